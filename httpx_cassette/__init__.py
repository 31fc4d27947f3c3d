"""Record each exchange with a language model once, replay it offline for ever."""

from __future__ import annotations

__version__ = "0.1.0"
