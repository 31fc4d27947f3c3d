"""Open pages with the fifty injections in headless Chromium, and see that none runs, loads or sends anything.

``python -m tests.browser [CHROMIUM]``. Each injection stands everywhere in a page that ``compare --html``
makes, and bare in a page without protection, to know what it would do: were there none that is obeyed there,
nothing would be proved. What is looked for is a script that renames the page, and a request to a server on
loopback.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, NamedTuple

from httpx_cassette.cli._page import page

from .injections import INJECTIONS
from .test_cli_html import answers

__all__ = ["main"]

#: Of fifty, so many are obeyed by a page without protection, or more; the others are of old browsers.
_OBEYED = 25

#: A name that needs no quotes.
_TITLE = "20261130"


class Seen(NamedTuple):
    """What became of an injection.

    Args:
        ran: Whether a script ran.
        asked: How many requests came.
    """

    ran: bool
    asked: int


class _Listener(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Take note of a request, and answer with nothing."""
        self.asked.append(self.path)
        self.send_response(204)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main(chromium: str) -> int:
    """Try all; print what is found and return the exit status.

    Args:
        chromium: The program.
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), _Listener) as server, tempfile.TemporaryDirectory() as made:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        obeyed = bad = 0
        for number, injection in enumerate(INJECTIONS, 1):
            text = injection.replace("https://evil.example", f"http://127.0.0.1:{server.server_port}")
            text = text.replace("alert(1)", f"document.title={_TITLE}")
            bare = f"<!DOCTYPE html><title>bare</title><body><pre>{text}</pre>"
            protected = "".join(page(text, [text], answers(text)))
            control = _look(chromium, bare, Path(made), _Listener.asked)
            seen = _look(chromium, protected, Path(made), _Listener.asked)
            obeyed += control.ran or control.asked > 0
            bad += seen.ran or seen.asked > 0
            print(f"{number:>2}  bare {_said(control):<12}  page {_said(seen):<12}  {injection}", flush=True)
        server.shutdown()
    print(f"{obeyed} of {len(INJECTIONS)} are obeyed by a page without protection, {bad} by that of compare")
    return 0 if not bad and obeyed >= _OBEYED else 1


def _said(seen: Seen) -> str:
    return " ".join(filter(None, ("runs" if seen.ran else "", "loads" if seen.asked else ""))) or "-"


def _look(chromium: str, text: str, folder: Path, asked: list[str]) -> Seen:
    """Open a page, give it a second of its own time, and see what came of it."""
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8", errors="replace")
    asked.clear()
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=1000", "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True, text=True, errors="replace", check=True, timeout=120,
    )  # fmt: skip
    title = done.stdout.partition("<title>")[2].partition("</title>")[0]
    return Seen(title == _TITLE, len(asked))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "chromium"))
