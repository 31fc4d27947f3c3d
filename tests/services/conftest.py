"""Where the services can be run: their framework and their server live in an environment of their own."""

from __future__ import annotations

import importlib.util
import os

# A server is ended by a signal, and only POSIX has those that tell how it ended.
_CAN_SERVE = os.name == "posix" and all(map(importlib.util.find_spec, ("fastapi", "uvicorn")))
collect_ignore = [] if _CAN_SERVE else ["test_endings.py", "test_in_process.py", "test_service.py"]
