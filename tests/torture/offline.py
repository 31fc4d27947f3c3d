"""Replay with the network taken away: the same answers, and nothing that even tries for it.

Once as it is and once in a network namespace that has no network (``unshare -rn``). The control records in
place of replaying, without a server behind: there the same watch must see, and stop, the attempt.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._calls import Upstream, answer_to, ask, client
from ._replay_suite import QUESTIONS
from ._trial import Account, Setting, Skipped, Trial

__all__ = ["TRIALS"]

ROOT = Path(__file__).parent.parent.parent


def _recorded(setting: Setting) -> Path:
    path = setting.folder / "suite.jsonl"
    with client(path, "record", Upstream(), fsync=False) as asker:
        for words, stream in QUESTIONS.items():
            ask(asker, words, stream=stream)
    return path


def _suite(path: Path, mode: str, before: Sequence[str] = ()) -> dict[str, Any]:
    """Run the suite in a process of its own and return what it says."""
    done = subprocess.run(
        [*before, sys.executable, "-m", "tests.torture._replay_suite", str(path), mode],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the suite ended with {done.returncode}: {done.stderr[-2_000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _check(found: dict[str, Any], account: Account) -> None:
    for call, heard in found["told"].items():
        words = call.partition(", ")[2]
        expected = answer_to(words) if words in QUESTIONS else "CassetteMiss"
        account.expect(heard == expected, f"{call}: {heard!r}")
        account.see("right answers", heard == answer_to(words))
    account.see("touches of the network", sum(found["touched"].values()))
    account.expect(not found["touched"], f"the network was touched: {found['touched']}")


def _watched(setting: Setting, account: Account) -> None:
    path = _recorded(setting)
    _check(_suite(path, "replay"), account)
    account.need("right answers", 2 * len(QUESTIONS))
    # The same in record mode goes for the network with what is not recorded, and must be seen and stopped.
    control = _suite(setting.folder / "other.jsonl", "record")
    account.see("touches of the control", sum(control["touched"].values()))
    account.need("touches of the control", len(QUESTIONS))
    heard = set(control["told"].values())
    account.expect(not heard & {answer_to(words) for words in QUESTIONS}, "the control was answered")


def _without_network(setting: Setting, account: Account) -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        raise Skipped("unshare is not installed")
    alone = [unshare, "-rn"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        raise Skipped("no network namespace can be made here")
    path = _recorded(setting)
    found = _suite(path, "replay", alone)
    _check(found, account)
    account.expect(found == _suite(path, "replay"), "with the network it is answered otherwise")
    account.need("right answers", 2 * len(QUESTIONS))


TRIALS = (
    Trial("watched", "same answers, 0 touches of the network", _watched),
    Trial("no-network", "same answers, 0 touches of the network", _without_network),
)
