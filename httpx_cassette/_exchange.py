"""One recording as people read it: what was asked, and what was answered.

Everything is worked out when it is asked for. A recording that is sealed and holds something else than it
should, edited by hand or imported, says less; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from ._answer import cut_script
from ._call import Json
from ._errors import CassetteDamaged
from ._excerpt import cut
from ._notebook import exchange_html
from ._recording import INCOMPARABLE, Recording
from ._usage import Usage, model_in, usage_of
from .readers import Message, ToolCall, read_answers, read_messages

__all__ = ["Exchange", "words_of_finish"]

_T = TypeVar("_T")


class Exchange:
    """One recording: what was asked, and what was answered.

    Args:
        recording: The recording.
        superseded: Whether another one is answered with in its place, as it was recorded anew.
    """

    def __init__(self, recording: Recording, superseded: bool = False) -> None:
        self._recording = recording
        self._answers: list[Message] | None = None
        self._usage: Usage | None = None
        self.superseded = superseded

    # -- the line ----------------------------------------------------------------------------------

    @property
    def recording(self) -> Recording:
        """The recording as the store has it."""
        return self._recording

    @property
    def path(self) -> str:
        """The cassette file."""
        return self._recording.path

    @property
    def line(self) -> int:
        """The number of its line, from 1."""
        return self._recording.number

    @property
    def size(self) -> int:
        """How many bytes its line has."""
        return len(self._recording.line)

    @property
    def raw(self) -> bytes:
        """The line as it stands in the file, without its newline."""
        return self._recording.line

    @property
    def fingerprint(self) -> str:
        """The key, 64 hex digits."""
        return self._recording.head.key.hex()

    @property
    def sample(self) -> int:
        """Which of several answers it is, from 0."""
        return self._recording.head.sample

    @property
    def gen(self) -> int:
        """Its generation, from 0: how often the call was recorded anew before."""
        return self._recording.head.gen

    @property
    def at(self) -> str:
        """When it was recorded, RFC 3339."""
        return _read(lambda: self._recording.at, "")

    @property
    def dialect(self) -> str:
        """The name of the wire format."""
        return _read(lambda: self._recording.dialect, "generic")

    @property
    def ms(self) -> int | None:
        """How many milliseconds the exchange took."""
        taken = self._member("ms")
        return taken if type(taken) is int else None

    @property
    def finish(self) -> Json:
        """The finish reason; a list when there are several choices."""
        finish: Json = self._member("finish")
        return finish

    @property
    def finish_words(self) -> str:
        """The finish reason as text."""
        return words_of_finish(self.finish)

    @property
    def request(self) -> dict[str, Any]:
        """The request as stored: redacted, media as digests."""
        return _object(self._member("request"))

    @property
    def response(self) -> dict[str, Any]:
        """The response as stored: its status, its headers, and its body in one of four forms."""
        return _object(self._member("response"))

    @property
    def policy(self) -> dict[str, Any]:
        """What the key depends on beside the request, where it is not the default."""
        return _object(self._member("policy"))

    # -- what is said ------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """What was asked, the system prompt first; empty where the format is not known."""
        return read_messages(self.dialect, self.request.get("json"))

    @property
    def question(self) -> str:
        """The last turn of the user, or the last text of a format that is not known."""
        asked = [
            message.text for message in self.messages if message.role in _ASKING and message.text.strip()
        ]
        return asked[-1] if asked else _last_text(self.request)

    @property
    def answers(self) -> list[Message]:
        """What was answered: a message for each choice."""
        if self._answers is None:
            self._answers = read_answers(self.dialect, self.documents)
        return self._answers

    @property
    def documents(self) -> list[Json]:
        """The answer, or the events of its stream, as JSON; empty where it is none."""
        response = self.response
        if "json" in response:
            return [response["json"]]
        script = response.get("script")
        events = script if isinstance(script, list) else []
        return [event["json"] for event in events if isinstance(event, dict) and "json" in event]

    def stream(self, chunk_size: int = 16) -> Iterator[bytes]:
        """Yield the events of a stream as they are replayed; nothing, where the answer is none.

        Args:
            chunk_size: Characters of text in each piece.

        Raises:
            CassetteDamaged: No answer can be made of the recording.
        """
        stored = self._recording.response()
        if stored.kind == "script":
            try:
                yield from cut_script(stored, self.dialect, chunk_size)
            except INCOMPARABLE as error:
                raise CassetteDamaged(
                    f"the recording has no answer that can be made: {error}", self.path, self.line
                ) from error

    @property
    def text(self) -> str:
        """The text of the answer, of the first of several; all of it where the format is not known."""
        return self.answers[0].text if self.answers else self._raw_text()

    @property
    def thinking(self) -> str:
        """What the model thought before, as far as it is told."""
        return self.answers[0].thinking if self.answers else ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the model asks for."""
        return self.answers[0].tool_calls if self.answers else ()

    @property
    def usage(self) -> Usage:
        """The tokens, as the provider counted them."""
        if self._usage is None:
            self._usage = usage_of(self._recording)
        return self._usage

    @property
    def model(self) -> str:
        """The model that answered, or that was asked for; empty where nobody says."""
        return self.usage.model or model_in(str(self.request.get("url", "")).partition("?")[0])

    # -- how it looks ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        said = f" {cut(self.text, 60)!r}" if self.text else ""
        return f"<Exchange {self.fingerprint[:12]} {self.path}:{self.line} {self.dialect}{said}>"

    def _repr_html_(self) -> str:
        title = " ".join(filter(None, (self.fingerprint[:12], self.dialect, self.model, self.at)))
        answers = self.answers or [Message("answer", self._raw_text())]
        return exchange_html(title, [*self.messages, *(replace(each, role="answer") for each in answers)])

    def _member(self, name: str) -> Any:
        return _read(lambda: self._recording.members.get(name), None)

    def _raw_text(self) -> str:
        response = self.response
        if isinstance(response.get("text"), str):
            return str(response["text"])
        return "" if not self.documents else "\n".join(_dumped(each) for each in self.documents)


def words_of_finish(finish: Json) -> str:
    """Return a finish reason, or those of several choices, as text."""
    reasons = finish if isinstance(finish, list) else [finish]
    return ", ".join(str(reason) for reason in reasons if reason is not None)


#: Roles of the user, in the words of all formats.
_ASKING = frozenset({"user", "human"})


def _read(value: Callable[[], _T], default: _T) -> _T:
    """Return what a function reads from a line; one that is sealed and yet no recording says nothing."""
    try:
        return value()
    except INCOMPARABLE:
        return default


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _last_text(request: dict[str, Any]) -> str:
    body = request.get("json")
    members = body if isinstance(body, dict) else {}
    said = (members.get(name) for name in ("input", "prompt", "query", "text"))
    listed = (each[-1] if isinstance(each, list) and each else each for each in said)
    return next((each for each in listed if isinstance(each, str)), "")


def _dumped(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # Integers beyond 64 bits, and lone surrogates.
        return repr(value)
