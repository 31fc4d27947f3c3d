"""A small file system of one's own: a tmpfs in a mount namespace, gone with the process that made it."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from ._trial import Skipped

__all__ = ["Mount"]

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 1, 32, 16384, 1 << 18


class Mount:
    """A tmpfs that only this process and its children see. To be made in a child process.

    Args:
        folder: Where it is mounted.
        size: How much it holds, as the option ``size`` of a mount takes it.

    Raises:
        Skipped: Mounting is not allowed here.
    """

    def __init__(self, folder: Path, size: str) -> None:
        if not sys.platform.startswith("linux"):
            raise Skipped("a tmpfs is mounted on Linux only")
        self.folder = folder
        self._call = ctypes.CDLL(None, use_errno=True)
        _own_namespace(self._call)
        # Nothing that is mounted here is to be seen outside.
        self._mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
        self._mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=" + size.encode())

    def make_read_only(self) -> None:
        """Let nobody write here any more, not even root."""
        self._mount(b"tmpfs", os.fsencode(self.folder), b"tmpfs", _MS_REMOUNT | _MS_RDONLY, None)

    def close(self) -> None:
        """Unmount it."""
        self._call.umount2(os.fsencode(self.folder), 2)  # MNT_DETACH

    def _mount(
        self, source: bytes, target: bytes, kind: bytes | None, flags: int, data: bytes | None
    ) -> None:
        if self._call.mount(source, target, kind, ctypes.c_ulong(flags), data) != 0:
            raise Skipped(f"mounting is not allowed here: {os.strerror(ctypes.get_errno())}")


def _own_namespace(call: ctypes.CDLL) -> None:
    user, group = os.getuid(), os.getgid()
    if user == 0 and call.unshare(_CLONE_NEWNS) == 0:
        return
    # Whoever may make a namespace of users is root in it.
    if call.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        raise Skipped(f"no mount namespace can be made here: {os.strerror(ctypes.get_errno())}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
