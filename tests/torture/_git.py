"""A git repository with one cassette in it, as a user's project has. Nothing here knows about stores."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ._trial import Skipped

__all__ = ["Repository"]

_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


class Repository:
    """A repository whose cassettes are merged line by line.

    Args:
        folder: Where it is made.

    Raises:
        Skipped: There is no git here.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("git") is None:
            raise Skipped("git is not installed")
        self.folder = folder
        self.path = folder / "cassettes" / "chat.jsonl"
        self.path.parent.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        # As the documentation offers it.
        (folder / ".gitattributes").write_text(
            "**/cassettes/*.jsonl text eol=lf merge=union\n", encoding="utf-8"
        )
        self.commit()

    def git(self, *arguments: str) -> str:
        """Run a command of git and return what it printed."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def commit(self) -> None:
        """Commit whatever there is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")

    def branch(self, name: str, start: str = "main") -> None:
        """Begin a branch and check it out."""
        self.git("checkout", "--quiet", "-b", name, start)

    def switch(self, name: str, *, force: bool = False) -> None:
        """Check a branch out."""
        self.git("checkout", "--quiet", *(["--force"] if force else []), name)

    def merge(self, name: str) -> None:
        """Merge a branch into the one that is checked out."""
        self.git("merge", "--quiet", "--no-edit", name)
