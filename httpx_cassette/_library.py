"""What a driver needs of one of the two client libraries."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._bodies import RecordingStream, ReplayStream

__all__ = ["Library"]


class Library(NamedTuple):
    """One of the two client libraries.

    Args:
        name: Its import name.
        module: The module itself.
        replay_stream: The class of a replayed stream.
        recording_stream: The class of a stream that is being recorded.
        import_line: What a user writes to import the transport for it.
    """

    name: str
    module: Any
    replay_stream: type[ReplayStream]
    recording_stream: type[RecordingStream]
    import_line: str
