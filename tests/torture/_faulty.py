"""``python -m tests.torture._faulty FOLDER short|full``: what ``faults`` runs in a process whose calls fail.

For every system call on a cassette, and every way in which it may fail, once or from then on: what came of
the answers that were paid for, and what is in the file afterwards. Prints the account as JSON.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ._injection import FAULTS, Injector, Plan
from ._trial import Account

#: What is on file before, what is asked while a call fails, and what is asked afterwards.
BEFORE, DURING, AFTER = ("before 0", "before 1"), ("during 0", "during 1"), "after"

#: What must never be lost of a torn file: the beginning of a line.
TORN = b'{"v":1,"kv":1,"key":"0123456789abcdef'


class Scene(NamedTuple):
    """Something that is done while a call fails.

    Args:
        name: What it is.
        set_up: Makes the file.
        play: Does it, and looks at what came of it.
    """

    name: str
    set_up: Callable[[Path], None]
    play: Callable[[Injector, Plan, Path, Account, str], None]


def main(folder: Path, is_short: bool) -> Account:
    """Try every fault at every call of every scene."""
    injector = Injector(str(folder))
    account = Account()
    number = 0
    for scene in SCENES:
        for fault in FAULTS:
            for lasts in (False, True):
                step = 8 if is_short else 1
                at = 1
                while True:
                    number += 1
                    path = folder / f"{number}.jsonl"
                    scene.set_up(path)
                    plan = Plan(fault, at, lasts)
                    where = f"{scene.name}, {fault} {'from' if lasts else 'at'} call {at}"
                    scene.play(injector, plan, path, account, where)
                    path.unlink(missing_ok=True)
                    account.see("runs")
                    what = "calls cut short" if fault == "short" else "calls that failed"
                    account.see(what, sum(call.isupper() for call in injector.calls))
                    at += step
                    if not injector.has_come:
                        break
    return account


# -- making the file -----------------------------------------------------------------------------------


def _nothing(path: Path) -> None:
    pass


def _two_recordings(path: Path) -> None:
    from ._calls import Upstream, ask, client

    with client(path, "record", Upstream(), fsync=False) as asker:
        for words in BEFORE:
            ask(asker, words)


def _two_and_a_torn_tail(path: Path) -> None:
    _two_recordings(path)
    with path.open("ab") as file:
        file.write(TORN)


# -- recording -----------------------------------------------------------------------------------------


def _record(
    injector: Injector, plan: Plan, path: Path, account: Account, where: str, mode: str = "record"
) -> None:
    from httpx_cassette import Cassette

    from ._calls import Upstream, ask, client

    before = path.read_bytes() if path.exists() else b""
    told: dict[str, list[str]] = {"returned": [], "carried": [], "refused": [], "interrupted": []}
    upstream = Upstream()
    injector.begin(plan)
    asker = None
    try:
        asker = client(Cassette(path), mode, upstream)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        _expect_documented(error, account, where)
    for words in DURING if asker is not None else ():
        told[_ask_one(asker, words, account, where)].append(words)
    injector.end()
    if asker is None:
        asker = client(Cassette(path), mode, upstream)
    # The same client, now that nothing fails any more.
    account.expect(
        _ask_one(asker, AFTER, account, where) == "returned", f"{where}: the client does not recover"
    )
    for outcome, questions in told.items():
        account.see(outcome, len(questions))
    kept = [*told["returned"], *told["carried"], *told["interrupted"]]
    lost = [words for words in upstream.paid if words not in [*kept, AFTER]]
    account.expect(not lost, f"{where}: the answer to {lost} was paid, and neither returned nor carried")
    unpaid = [words for words in told["refused"] if words in upstream.paid]
    account.expect(not unpaid, f"{where}: {unpaid} was refused after it was paid")
    on_file = [*(BEFORE if before else ()), *told["returned"], AFTER]
    _look(path, before, on_file, account, where)
    with client(Cassette(path), "record", Upstream()) as again:
        for words in DURING:
            ask(again, words)
    _look(path, before, [*on_file, *DURING], account, where)
    gc.collect()


def _rerecord(injector: Injector, plan: Plan, path: Path, account: Account, where: str) -> None:
    _record(injector, plan, path, account, where, "rerecord")


def _ask_one(asker: object, words: str, account: Account, where: str) -> str:
    """Ask, and return what came of it."""
    from httpx_cassette import CassetteError, CassetteStop, CassetteWriteError

    from ._calls import answer_to, ask, said, said_in

    try:
        heard = said(ask(asker, words))  # type: ignore[arg-type]  # an httpx.Client
    except CassetteWriteError as stop:
        account.expect(
            said_in(stop.content) == answer_to(words), f"{where}: the error carries another answer"
        )
        return "carried"
    except (CassetteStop, CassetteError):
        return "refused"
    except KeyboardInterrupt:
        return "interrupted"
    except Exception as error:
        _expect_documented(error, account, where)
        return "refused"
    account.expect(heard == answer_to(words), f"{where}: {words!r} has another answer")
    return "returned"


def _expect_documented(error: Exception, account: Account, where: str) -> None:
    from httpx_cassette import CassetteError

    account.expect(isinstance(error, CassetteError), f"{where}: raised {error!r}, which is not documented")


def _look(path: Path, before: bytes, on_file: list[str], account: Account, where: str) -> None:
    """See whether everything that was acknowledged is on file, and nothing there is damaged."""
    from httpx_cassette import Cassette, CassetteStop

    from ._calls import answer_to, ask, client, said

    account.expect(path.read_bytes().startswith(before), f"{where}: what was there before was changed")
    cassette = Cassette(path)
    found = cassette.check()
    account.expect(not found, f"{where}: damage that no note explains: {found}")
    with client(cassette, "replay") as asker:
        for words in on_file:
            try:
                account.expect(
                    said(ask(asker, words)) == answer_to(words), f"{where}: {words!r} has another answer"
                )
            except CassetteStop as stop:
                account.fault(f"{where}: {words!r} was acknowledged and is not there: {stop!r}")
            account.see("acknowledged and looked up")


# -- replaying -----------------------------------------------------------------------------------------


def _replay(injector: Injector, plan: Plan, path: Path, account: Account, where: str) -> None:
    from httpx_cassette import Cassette, CassetteMiss, CassetteStop

    from ._calls import Upstream, client

    before = path.read_bytes()
    upstream = Upstream()
    injector.begin(plan)
    asker = None
    try:
        asker = client(Cassette(path), "replay", upstream)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        _expect_documented(error, account, where)
    if asker is not None:
        for words in BEFORE:
            try:
                _expect_answer(asker, words, account, where)
            except CassetteMiss:
                account.fault(f"{where}: a fault of the store is called a miss")
            except KeyboardInterrupt:
                account.see("interrupted")
            except CassetteStop:
                account.see("refused")
            except Exception as error:
                _expect_documented(error, account, where)
    injector.end()
    asker = client(Cassette(path), "replay", upstream) if asker is None else asker
    for words in BEFORE:
        try:
            _expect_answer(asker, words, account, where)
        except CassetteStop as stop:
            account.fault(f"{where}: the client does not recover: {stop!r}")
    account.expect(not upstream.paid, f"{where}: a fault of the store led to a real call")
    account.expect(path.read_bytes() == before, f"{where}: replaying changed the file")
    gc.collect()


def _expect_answer(asker: object, words: str, account: Account, where: str) -> None:
    from ._calls import answer_to, ask, said

    heard = said(ask(asker, words))  # type: ignore[arg-type]  # an httpx.Client
    account.expect(heard == answer_to(words), f"{where}: {words!r} has another answer")
    account.see("replayed")


SCENES = (
    Scene("a new file", _nothing, _record),
    Scene("a file", _two_recordings, _record),
    Scene("a torn file", _two_and_a_torn_tail, _record),
    Scene("recording anew", _two_recordings, _rerecord),
    Scene("replaying", _two_recordings, _replay),
    Scene("replaying a torn file", _two_and_a_torn_tail, _replay),
)


if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()):
        result = main(Path(sys.argv[1]), sys.argv[2] == "short")
    print(json.dumps(result.as_data()))
