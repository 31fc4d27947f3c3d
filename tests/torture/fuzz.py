"""Replay from cassettes that were mutated at random: bytes, lines, and the JSON of sealed lines.

Whatever is done to the bytes, a call gets the answer that was recorded for it, or an error that is documented;
never another answer, and never another error. An older answer is right only where the newest line no longer
names its key: no one can know then that it was one.

A line whose JSON was changed and sealed anew is a recording by all signs, and says what it says: there only
the errors are looked at.
"""

from __future__ import annotations

import base64
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from httpx_cassette import Cassette, CassetteError, CassetteStop

from ._calls import Upstream, ask, client, said
from ._store import sealed
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]

#: Question -> whether its answer is a stream, and how often it was recorded anew.
QUESTIONS = {"plain": (False, 0), "stream": (True, 0), "plain anew": (False, 2), "stream anew": (True, 1)}

#: What a mutation may put in: bytes that mean something to a line, to JSON, to UTF-8 or to git.
_PIECES = (
    b"\n", b"\r\n", b"\0", b"\0" * 600, b'"', b"\\", b"{", b"}", b"[" * 300, b",", b"\xff\xfe", b"\xef\xbb\xbf",
    b"<<<<<<< ours\n", b"\n=======\n", b"\n>>>>>>> theirs\n", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"NaN", b"1e999",
    b"9" * 1_200, b'{"v":1,"tear":[0,10]}\n', b'{"v":2}\n', b'{"v":1,"kv":1,"key":"', b'"sum":"0000000000000000"}',
)  # fmt: skip


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
            self.heads[words] = b"\n" + line[: line.index(b'"at":')]

    def allowed(self, words: str, data: bytes) -> list[str]:
        """Return what may be answered from the mutated file."""
        answers = self.answers[words]
        # What stands behind the last newline was torn, and never acknowledged.
        lines = b"\n" + data[: data.rfind(b"\n") + 1]
        return answers[-1:] if self.heads[words] in lines else answers


def _fuzz(setting: Setting, account: Account, mutate: Callable[[Seed, random.Random], bytes], is_strict: bool) -> None:
    seed = Seed(setting.folder / "seed.jsonl")
    path = setting.folder / "mutated.jsonl"
    tracemalloc.start()
    for number in range(setting.of(150, 2_500)):
        data = mutate(seed, random.Random(f"{setting.random.random()} {number}"))
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
                heard = said(ask(asker, words, stream=stream))
            except (CassetteStop, CassetteError):
                account.see("documented errors")
            except Exception as error:
                if is_strict or type(error).__module__.startswith(("httpx", "orjson")):
                    account.fault(f"{words!r} raised {error!r} from {_shown(seed, data)}")
                else:
                    account.see("answers of another shape")  # It was read, and ``said`` knows no such answer.
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
                    _ = recording.response(), recording.request, recording.policy, recording.at, recording.dialect
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


# -- mutations -----------------------------------------------------------------------------------------


def _mutate_bytes(seed: Seed, chance: random.Random) -> bytes:
    data = seed.data
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        data = chance.choice(_MUTATIONS)(data, chance)
    return data


def _flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) or 1)
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] if data else data


def _remove(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.choice((1, 1, 7, 300)) :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_PIECES) + data[at:]


def _truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _copy(data: bytes, chance: random.Random) -> bytes:
    """Put a piece of the file somewhere else, too."""
    start, at = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
    return data[:at] + data[start : start + chance.randrange(1, 400)] + data[at:]


def _zero(data: bytes, chance: random.Random) -> bytes:
    """Lose a block, as a file system does that had not written it yet."""
    at = chance.randrange(len(data) + 1)
    length = min(chance.randrange(1, 600), len(data) - at)
    return data[:at] + bytes(length) + data[at + length :]


def _shuffle(data: bytes, chance: random.Random) -> bytes:
    """Drop, double and reorder lines."""
    lines = data.split(b"\n")
    return b"\n".join(chance.choices(lines, k=len(lines)))


def _encode(data: bytes, chance: random.Random) -> bytes:
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252"))
    return data.decode("utf-8", "replace").encode(encoding, "replace")


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _flip, _remove, _remove, _insert, _insert, _truncate, _copy, _zero, _shuffle, _encode,
)  # fmt: skip


def _mutate_json(seed: Seed, chance: random.Random) -> bytes:
    """Change the JSON of lines, and seal them anew."""
    lines = list(seed.lines)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(lines))
        members = json.loads(lines[at])
        members.pop("sum", None)
        _change(members, chance)
        text = json.dumps(members, ensure_ascii=chance.random() < 0.3, separators=(",", ":"))
        lines[at] = sealed(text.encode("utf-8", "surrogatepass")[:-1])
    return b"\n".join(lines) + b"\n"


def _change(value: Any, chance: random.Random) -> None:
    """Change one value somewhere below."""
    while True:
        names = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not names:
            return
        name = chance.choice(names)
        if isinstance(value[name], (dict, list)) and value[name] and chance.random() < 0.75:
            value = value[name]
            continue
        if chance.random() < 0.2:
            del value[name]
        elif chance.random() < 0.1 and isinstance(value, dict):
            value[_odd(chance, str)] = value.pop(name)
        else:
            value[name] = _odd(chance)
        return


def _odd(chance: random.Random, kind: type | None = None) -> Any:
    deep: Any = []
    for _ in range(chance.choice((3, 150))):
        deep = [deep]
    odd = [
        None, True, 0, -1, 10**9, 10**30, 1.5, 1e308, "", "x", "\ud800", "\u2028\x85", "json", "script", "text",
        "headers", "\0", "a" * 2_000, [], {}, [None], {"": None}, deep, {"json": 1}, {"text": []}, [[[]]], "0" * 64,
        base64.b64encode(b"\xff\xfe").decode(), "======", {"status": 200}, float("nan"),
    ]  # fmt: skip
    return chance.choice([each for each in odd if kind is None or isinstance(each, kind)])


# -- control -------------------------------------------------------------------------------------------


def _control(setting: Setting, seed: Seed, mutate: Callable[[Seed, random.Random], bytes], account: Account) -> None:
    """Read the mutated files without a thought: whatever is JSON counts, and the last line wins."""
    for number in range(200):
        answers: dict[str, str] = {}
        for line in mutate(seed, random.Random(number)).split(b"\n"):
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
    _fuzz(setting, account, _mutate_bytes, True)


def _fuzz_json(setting: Setting, account: Account) -> None:
    _fuzz(setting, account, _mutate_json, False)


TRIALS = (
    Trial("bytes", "0 wrong answers, 0 undocumented errors", _fuzz_bytes),
    Trial("sealed-json", "0 undocumented errors", _fuzz_json),
)
