"""``httpx-cassette merge``: several cassettes in one, and what they say of the same call."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import click

from .._line import bare, has_seal, is_intact, read_head, tear_note
from .._rewrite import plain_lines
from ._command import counted
from ._parameters import file_argument, json_option, open_file
from ._rewriting import Teller, dry_run_option, finish, force_option, out_option, write
from ._terminal import Progress, progress

__all__ = ["command"]


@click.command(epilog="Example: httpx-cassette merge chat.jsonl mine.jsonl -o both.jsonl")
@file_argument("files", nargs=-1, required=True)
@out_option()
@force_option()
@dry_run_option()
@json_option("print an object in each line, what was done last")
def command(files: Sequence[str], out: str, is_forced: bool, is_dry: bool, as_json: bool) -> int:
    """Write the lines of cassettes into one, a recording that is in several of them once.

    Where two give the same call different answers, both stay, the last is replayed, each is named, and the
    exit status is 2. The newest generation of a call wins, wherever it stands. OUT may be one of the files.
    """
    for path in files:
        len(open_file(path))  # Each can be read, and holds no unresolved merge.
    teller, merged = Teller(as_json), _Merged()
    is_among = any(os.path.exists(out) and os.path.samefile(path, out) for path in files)
    with progress("merge", sum(map(os.path.getsize, files))) as bar:
        lines = ((line, False) for path in files for line in merged.lines(path, bar))
        write(out, lines, teller, is_dry=is_dry, replaces=is_forced or is_among)
    verb = "would be written" if is_dry else "written"
    text = (
        f"{out}: {counted(merged.kept, 'recording')} of {counted(len(files), 'file')} {verb}, "
        f"{merged.dropped:,} there twice"
    )
    facts = {"file": out, "recordings": merged.kept, "dropped": merged.dropped, "dry_run": is_dry}
    return finish(teller, facts, text)


class _Merged:
    """The lines of one file after the other, each recording once."""

    def __init__(self) -> None:
        self.kept = self.dropped = 0
        self._end = 0
        self._seen: set[bytes] = set()

    def lines(self, path: str, bar: Progress) -> Iterator[bytes]:
        for _, line in plain_lines(path):
            bar.advance(len(line))
            text = bare(line.removesuffix(b"\n"))
            for each in self._wanted(text, is_whole=line.endswith(b"\n")):
                self._end += len(each) + 1
                yield each

    def _wanted(self, text: bytes, *, is_whole: bool) -> Iterator[bytes]:
        if not text:
            return
        is_recording = read_head(text) is not None
        if is_recording and has_seal(text):
            digest = blake2b(text, digest_size=16).digest()
            if digest in self._seen:
                self.dropped += 1
                return
            self._seen.add(digest)
            self.kept += is_intact(text)
        yield text
        if not (is_whole or has_seal(text)):
            # Torn by a crash: the line of the next file must not be taken for its rest.
            yield tear_note(self._end - len(text) - 1, len(text))
