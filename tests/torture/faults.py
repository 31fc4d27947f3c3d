"""Let the n-th system call on the cassette fail, for every n.

With an I/O error, a full disk, an interruption, a short write or read, a Ctrl-C; once, or from then on. Three
ways, each of which does what the others cannot: by standing before the calls in the process (``_faulty``); by
strace, where the kernel itself answers; and by a limit on the size of files, which makes real short writes at
every byte of a line.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from httpx_cassette import Cassette, CassetteWriteError

from ._calls import Upstream, answer_to, ask, client, said, said_in
from ._children import in_child
from ._trial import Account, Setting, Skipped, Trial

__all__ = ["TRIALS"]

ROOT = Path(__file__).parent.parent.parent


def _wrapped(setting: Setting, account: Account) -> None:
    form = "short" if setting.is_short else "full"
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture._faulty", str(setting.folder), form],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        account.fault(f"the process under test ended with {done.returncode}: {done.stderr}")
        return
    account.add(Account.of_data(json.loads(done.stdout)))
    account.need("calls that failed", setting.of(250, 2_000))
    account.need("calls cut short", setting.of(100, 1_000))
    for outcome in ("returned", "carried", "refused", "replayed"):
        account.need(outcome, 20)


# -- strace --------------------------------------------------------------------------------------------

#: Calls of the kernel and how they fail; ``EINTR`` must be tried again by whoever made the call.
_STRACED = {
    "openat": ("EIO", "EMFILE"),
    "write": ("EIO", "ENOSPC", "EINTR"),
    "pread64": ("EIO", "EINTR"),
    "fdatasync": ("EIO", "ENOSPC"),
    "flock": ("EIO", "EINTR"),
    "fstat,newfstatat,stat,statx": ("EIO",),
}


def _straced(setting: Setting, account: Account) -> None:
    strace = shutil.which("strace")
    if strace is None:
        raise Skipped("strace is not installed")
    _expect_tracing(strace, setting.folder)
    whens = ("1",) if setting.is_short else ("1", "2", "3", "4", "6", "8", "1+", "2+", "4+")
    for call, errors in list(_STRACED.items())[:: 4 if setting.is_short else 1]:
        for error in errors:
            for when in whens:
                # What is interrupted for ever is tried again for ever.
                if error != "EINTR" or not when.endswith("+"):
                    _strace_once(strace, setting.folder, f"{call}:error={error}:when={when}", account)
    account.need("calls that failed", setting.of(2, 20))


def _expect_tracing(strace: str, folder: Path) -> None:
    """Trace a program that does nothing, as the recorder will be traced.

    Raises:
        Skipped: That is not allowed here, or this strace cannot inject.
    """
    done = subprocess.run(
        [strace, "-f", "-qq", "-o", str(folder / "probe.log"), "-P", str(folder / "chat.jsonl"),
         "-e", "trace=write", "-e", "inject=write:error=EIO:when=1", "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Skipped(f"strace cannot trace here: {done.stderr[-300:]}")


def _strace_once(strace: str, folder: Path, injection: str, account: Account) -> None:
    path, log = folder / "chat.jsonl", folder / "strace.log"
    path.unlink(missing_ok=True)
    with client(Cassette(path), "record", Upstream()) as asker:
        ask(asker, "before")
    calls = injection.partition(":")[0]
    done = subprocess.run(
        [strace, "-f", "-qq", "-o", str(log), "-P", str(path), "-e", f"trace={calls}",
         "-e", f"inject={injection}", sys.executable, "-m", "tests.torture._recorder", str(path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    trace = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if not done.stdout:
        account.fault(f"{injection}: the recorder ended with {done.returncode}: {done.stderr[-2_000:]}")
        return
    told = json.loads(done.stdout)
    account.see("runs")
    account.see("calls that failed", len(re.findall(r"\(INJECTED\)", trace)))
    account.expect(not told["undocumented"], f"{injection}: raised {told['undocumented']}")
    account.expect(
        not told["lost"], f"{injection}: {told['lost']} was paid, and neither returned nor carried"
    )
    account.see("carried", len(told["carried"]))
    kept = ["before", *told["returned"]]
    with client(Cassette(path), "record", Upstream()) as asker:
        ask(asker, "after")
    account.expect(
        not (found := Cassette(path).check()), f"{injection}: damage that no note explains: {found}"
    )
    with client(Cassette(path), "replay") as asker:
        for words in [*kept, "after"]:
            account.expect(
                said(ask(asker, words)) == answer_to(words), f"{injection}: {words!r} has another answer"
            )
            account.see("acknowledged and looked up")


# -- a limit on the size of files ----------------------------------------------------------------------


def _limited(setting: Setting, account: Account) -> None:
    path = setting.folder / "chat.jsonl"
    with client(path, "record", Upstream()) as asker:
        ask(asker, "before")
        start = path.stat().st_size
        ask(asker, "during")
        end = path.stat().st_size
    places = range(start, end, 7 if setting.is_short else 1)
    in_child(partial(_limit, path, places), account)
    account.need("carried", len(places))
    account.see("bytes that could be written, of a line", len(places))


def _limit(path: Path, places: range, account: Account) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    whole = path.read_bytes()
    before = whole[: places.start]
    for place in places:
        path.write_bytes(before)
        upstream = Upstream()
        with client(Cassette(path, fsync=False), "record", upstream) as asker:
            resource.setrlimit(resource.RLIMIT_FSIZE, (place, hard))
            try:
                ask(asker, "during")
                account.fault(f"limit {place}: a line was acknowledged that cannot be there")
            except CassetteWriteError as stop:
                account.see("carried")
                account.expect(
                    said_in(stop.content) == answer_to("during"), f"limit {place}: another answer is carried"
                )
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            account.expect(path.read_bytes() == before, f"limit {place}: the file is not as it was")
            ask(asker, "during")
        account.expect(upstream.paid == ["during"] * 2, f"limit {place}: {upstream.paid} were paid")
        cassette = Cassette(path)
        account.expect(
            not cassette.check() and len(cassette) == 2, f"limit {place}: the file is not whole in the end"
        )


TRIALS = (
    Trial("wrapped", "0 paid lost, 0 acknowledged lost; no fault is a miss", _wrapped),
    Trial("strace", "0 paid lost, 0 acknowledged lost", _straced),
    Trial("size-limit", "0 paid lost; the file as it was", _limited),
)
