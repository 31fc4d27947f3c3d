"""``httpx-cassette rekey``: new keys for old recordings, without a call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .._errors import CassetteError, OptionError
from ._command import counted
from ._parameters import file_argument, json_option
from ._rewriting import Teller, dry_run_option, finish, rewrite

if TYPE_CHECKING:
    from .._cassette import Cassette
    from .._policy import KeyPolicy
    from .._rewrite import Change

__all__ = ["command"]


@click.command(epilog='Example: httpx-cassette rekey chat.jsonl --policy \'{"ignore": ["user"]}\'')
@file_argument()
@click.option("--policy", metavar="JSON", help="the options of KeyPolicy; those of pyproject.toml by default")
@dry_run_option()
@json_option("print an object in each line, what was done last")
def command(file: str, policy: str | None, is_dry: bool, as_json: bool) -> int:
    """Compute the keys of recordings anew: under another policy, for this version of the key's rules.

    What is stored is the request as it was sent, so that nothing is called. Prompt files count as they were
    recorded. Calls that become one by it are named where their answers differ, and the exit status is 2; the
    former policy gives them their former keys back.
    """
    wanted = _policy(policy)
    teller = Teller(as_json)
    changed: list[int] = []
    count = 0

    def plan(cassette: Cassette) -> Change:
        len(cassette)
        return change

    def change(number: int, line: bytes) -> bytes | None:
        nonlocal count
        new, is_recording = _rekeyed(file, number, line, wanted, teller)
        count += is_recording
        if new is not line:
            changed.append(number)
        return new

    rewrite("rekey", file, plan, teller, is_dry=is_dry)
    verb = "would be rekeyed" if is_dry else "rekeyed"
    text = f"{file}: {len(changed):,} of {counted(count, 'recording')} {verb}"
    facts: dict[str, Any] = {"file": file, "rekeyed": changed, "recordings": count, "dry_run": is_dry}
    return finish(teller, facts, text)


def _policy(given: str | None) -> KeyPolicy:
    from .._settings import project_rules, read_policy

    if given is None:
        return project_rules()[0]
    try:
        options = json.loads(given)
    except ValueError as error:
        raise OptionError(f"--policy is no JSON: {error}") from error
    if not isinstance(options, dict):
        raise OptionError('--policy is no object; write it like {"ignore": ["metadata.run_id"]}')
    return read_policy(options, "--policy")


def _rekeyed(file: str, number: int, line: bytes, policy: KeyPolicy, teller: Teller) -> tuple[bytes, bool]:
    """Return the line, and whether it is a recording that is intact."""
    from .._line import is_intact, read_head
    from .._recording import Recording
    from .._rekeying import rekeyed

    head = read_head(line)
    if head is None or not is_intact(line):
        return line, False
    try:
        return rekeyed(Recording(line, file, number, head), policy), True
    except CassetteError as error:
        teller.finding(file, number, f"kept as it is: {error.message}")
        return line, True
