"""Replay from cassettes that were mutated at random: bytes, lines, and the JSON of sealed lines.

Whatever is done to the bytes, a call gets the answer that was recorded for it, or an error that is
documented; never another answer, and never another error. An older answer is right only where the newest line
no longer names its key: no one can know then that it was one.

A line whose JSON was changed and sealed anew is a recording by all signs, and says what it says: there only
the errors are looked at.
"""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from httpx_cassette import Cassette, CassetteError, CassetteStop

from ._calls import Upstream, ask, client, said
from ._mutations import mutate_bytes, mutate_json
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]

#: Question -> whether its answer is a stream, and how often it was recorded anew.
QUESTIONS = {"plain": (False, 0), "stream": (True, 0), "plain anew": (False, 2), "stream anew": (True, 1)}


class Seed:
    """A cassette that is intact, and what it answers.

    Args:
        path: Where it is recorded.
    """

    def __init__(self, path: Path) -> None:
        said_so = {"round": 0}
        upstream = Upstream(lambda words: f"{words}, answer {said_so['round']}: " + "für 雨 \U0001f686 " * 12)
        for nth in range(3):
            said_so["round"] = nth
            with client(Cassette(path, fsync=False), "record" if nth == 0 else "rerecord", upstream) as asker:
                for words, (stream, again) in QUESTIONS.items():
                    if nth <= again:
                        ask(asker, words, stream=stream)
        self.data = path.read_bytes()
        self.lines = self.data.split(b"\n")[:-1]
        self.answers: dict[str, list[str]] = {}
        self.heads: dict[str, bytes] = {}
        for line in self.lines:
            members = json.loads(line)
            words = members["request"]["json"]["messages"][-1]["content"]
            nth = len(self.answers.setdefault(words, []))
            self.answers[words].append(f"{words}, answer {nth}: " + "für 雨 \U0001f686 " * 12)
            # Where a line begins so, everybody can see that it is the newest.
            self.heads[words] = b"\n" + line[: line.index(b'"at":') + 1]

    def allowed(self, words: str, data: bytes) -> list[str]:
        """Return what may be answered from the mutated file."""
        answers = self.answers[words]
        # What stands behind the last newline was torn, and never acknowledged.
        lines = b"\n" + data[: data.rfind(b"\n") + 1]
        return answers[-1:] if self.heads[words] in lines else answers


def _fuzz(
    setting: Setting, account: Account, mutate: Callable[[bytes, random.Random], bytes], is_strict: bool
) -> None:
    seed = Seed(setting.folder / "seed.jsonl")
    path = setting.folder / "mutated.jsonl"
    tracemalloc.start()
    for number in range(setting.of(150, 2_500)):
        data = mutate(seed.data, random.Random(f"{setting.random.random()} {number}"))
        path.write_bytes(data)
        account.see("cassettes")
        account.see("that were damaged", data != seed.data)
        _replay(seed, path, data, account, is_strict)
        _look(path, account)
        _record(path, account)
    account.expect(tracemalloc.get_traced_memory()[1] < 100_000_000, "reading took more than 100 MB")
    tracemalloc.stop()
    account.need("right answers", 50)
    account.need("documented errors", 50)
    if is_strict:
        account.control(lambda other: _control(setting, seed, mutate, other))


def _replay(seed: Seed, path: Path, data: bytes, account: Account, is_strict: bool) -> None:
    try:
        asker = client(Cassette(path, strict=data[:1] == b"{" and len(data) % 5 == 0), "replay")
    except CassetteError:
        account.see("documented errors")
        return
    with asker:
        for words, (stream, _) in QUESTIONS.items():
            try:
                response = ask(asker, words, stream=stream)
            except (CassetteStop, CassetteError):
                account.see("documented errors")
                continue
            except Exception as error:
                account.fault(f"{words!r} raised {error!r} from {_shown(seed, data)}")
                continue
            try:
                heard = said(response)
            except Exception as error:
                # It was answered, and ``said`` knows no such answer; none such was ever recorded.
                account.see("answers of another shape")
                account.expect(not is_strict, f"{words!r}: {error!r} in the answer from {_shown(seed, data)}")
            else:
                account.see("right answers" if heard in seed.answers[words] else "other answers")
                if is_strict and heard not in seed.allowed(words, data):
                    account.fault(f"{words!r} was answered with {heard[:40]!r} from {_shown(seed, data)}")


def _look(path: Path, account: Account) -> None:
    """Use everything else that reads a cassette."""
    for strict in (False, True):
        try:
            cassette = Cassette(path, strict=strict)
            cassette.check()
            for recording in cassette.newest_first():
                try:
                    _ = (
                        recording.response(),
                        recording.request,
                        recording.policy,
                        recording.at,
                        recording.dialect,
                    )
                except CassetteError:
                    account.see("documented errors")
            _ = len(cassette), cassette.damage, cassette.torn, cassette.other_versions, cassette.refresh()
        except CassetteError:
            account.see("documented errors")
        except Exception as error:
            account.fault(f"reading raised {error!r}")


def _record(path: Path, account: Account) -> None:
    """Append to it: what was there stays, and what is new can be read."""
    before = path.read_bytes()
    try:
        with client(Cassette(path, fsync=False), "record", Upstream()) as asker:
            heard = said(ask(asker, "something new"))
        with client(Cassette(path), "replay") as asker:
            account.expect(said(ask(asker, "something new")) == heard, "what was appended has another answer")
        account.see("appended")
    except (CassetteStop, CassetteError):
        account.see("documented errors")
    except Exception as error:
        account.fault(f"recording raised {error!r}")
    account.expect(path.read_bytes().startswith(before), "appending changed what was there")


def _shown(seed: Seed, data: bytes) -> str:
    """Return where a mutated file begins to differ, in a form that can be put into a test."""
    at = next((at for at, (one, other) in enumerate(zip(seed.data, data, strict=False)) if one != other), 0)
    return f"{len(data)} bytes that differ at {at}: {data[max(0, at - 40) : at + 40]!r}"


# -- control -------------------------------------------------------------------------------------------


def _control(
    setting: Setting, seed: Seed, mutate: Callable[[bytes, random.Random], bytes], account: Account
) -> None:
    """Read the mutated files without a thought: whatever is JSON counts, and the last line wins."""
    for number in range(200):
        answers: dict[str, str] = {}
        for line in mutate(seed.data, random.Random(number)).split(b"\n"):
            try:
                members = json.loads(line)
                words = members["request"]["json"]["messages"][-1]["content"]
                answers[words] = json.dumps(members["response"], ensure_ascii=False)
            except (ValueError, KeyError, TypeError, IndexError):
                continue
        for words, heard in answers.items():
            right = seed.answers.get(words, [""])[-1]
            account.expect(right in heard, f"{words!r} has another answer")


def _fuzz_bytes(setting: Setting, account: Account) -> None:
    _fuzz(setting, account, mutate_bytes, True)


def _fuzz_json(setting: Setting, account: Account) -> None:
    _fuzz(setting, account, mutate_json, False)


TRIALS = (
    Trial("bytes", "0 wrong answers, 0 undocumented errors", _fuzz_bytes),
    Trial("sealed-json", "0 undocumented errors", _fuzz_json),
)
