"""Imports that wait until they are needed, and forks that wait for them.

A child that is forked while another thread imports a module inherits the lock of that import, and would wait
for ever for its end. So what this package imports late is imported under one lock, and a fork takes that lock
first.
"""

from __future__ import annotations

import os
import threading

__all__ = ["LOADING"]

#: Held while something is imported late. Re-entrant: what is imported may import late itself.
LOADING = threading.RLock()

if hasattr(os, "register_at_fork"):  # pragma: no branch  # not on Windows, which does not fork
    os.register_at_fork(
        before=LOADING.acquire, after_in_parent=LOADING.release, after_in_child=LOADING.release
    )
