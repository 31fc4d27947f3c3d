"""``httpx-cassette redact``: today's redaction for an old cassette."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .._errors import CassetteDamaged
from .._line import is_intact, read_head, torn_length
from ._command import counted, say
from ._parameters import file_argument, json_option
from ._redaction import advice, redaction_of, redaction_options
from ._rewriting import Teller, dry_run_option, finish, rewrite

if TYPE_CHECKING:
    from .._cassette import Cassette
    from .._redact import Redaction
    from .._rewrite import Change

__all__ = ["command"]


@click.command(epilog="Example: httpx-cassette redact chat.jsonl --pii")
@file_argument()
@redaction_options()
@click.option("--drop-damaged", "drops_damaged", is_flag=True, help="drop lines that cannot be read")
@dry_run_option()
@json_option("print what was done as one object")
def command(
    file: str, has_pii: bool, has_names: bool, drops_damaged: bool, is_dry: bool, as_json: bool
) -> int:
    """Redact an old cassette by today's rules, and the own ones of pyproject.toml.

    The keys are computed anew, so that calls find their recordings. What was torn by a crash is dropped; a
    line that cannot be read could hold a secret, and is refused unless --drop-damaged is given. --pii and
    --names need a key in HTTPX_CASSETTE_HMAC_KEY. The file is replaced when the new one was verified.
    """
    redaction, is_usual = redaction_of(has_pii, has_names)
    work = _Redacting(file, redaction, drops_damaged)
    teller = Teller(as_json)
    rewrite("redact", file, work.plan, teller, is_dry=is_dry)
    verb = "would be redacted" if is_dry else "redacted"
    text = f"{file}: {len(work.redacted):,} of {counted(work.count, 'recording')} {verb}"
    if work.dropped:
        text += f", {counted(len(work.dropped), 'unreadable line')} dropped"
    if not is_usual:
        say(advice(redaction))
    facts: dict[str, Any] = {
        "file": file, "redacted": work.redacted, "recordings": work.count, "dropped": work.dropped,
        "dry_run": is_dry,
    }  # fmt: skip
    return finish(teller, facts, text)


class _Redacting:
    """What becomes of the lines of one file."""

    def __init__(self, file: str, redaction: Redaction, drops_damaged: bool) -> None:
        self.redacted: list[int] = []
        self.dropped: list[int] = []
        self.count = 0
        self._file = file
        self._redaction = redaction
        self._drops_damaged = drops_damaged
        self._damaged: dict[int, str] = {}

    def plan(self, cassette: Cassette) -> Change:
        # Torn lines are none of them.
        self._damaged = {damage.number: damage.reason for damage in cassette.check()}
        return self._change

    def _change(self, number: int, line: bytes) -> bytes | None:
        from .._cleaning import cleaned, cleaned_other
        from .._recording import Recording

        if not line:
            return line
        if torn_length(line) is not None:
            return None  # With the line that it explains.
        head = read_head(line)
        if head is not None and is_intact(line):
            self.count += 1
            new: bytes | None = cleaned(Recording(line, self._file, number, head), self._redaction)
        else:
            new = None if head is not None else cleaned_other(line, self._redaction)
        if new is None:
            if number in self._damaged and not self._drops_damaged:
                raise CassetteDamaged(
                    f"the line is {self._damaged[number]}, so that nothing in it can be redacted; "
                    "repair or reseal it, or drop it with --drop-damaged",
                    self._file,
                    number,
                )
            self.dropped.append(number)
            return None
        if new is not line:
            self.redacted.append(number)
            return new
        return line
