"""What the stand-in server says: OpenAI's chat and embeddings formats, filled in by counting.

The n-th answer is worded differently from the one before it, yet is the same in every run.
Nothing here sends or receives anything, and nothing here is a model.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ._call import Json

__all__ = ["Completion", "Refused", "encode", "find_answer"]

#: The models that ``GET /v1/models`` lists; any other name is answered as well.
MODELS = ("stand-in-large", "stand-in-small")

# The lists have no common length, so that sixty answers in a row differ in more than their number.
_OPENINGS = ("Sure.", "Let me see…", "Of course.", "Happy to help.", "Good question.")
_MIDDLES = (
    "About “{question}” I would say: it depends.",
    "As for “{question}”, the short answer is yes and the long one is longer.",
    "You ask “{question}”, and opinions differ, mine among them.",
    "On “{question}” my view changes each time I am asked.",
)
_CLOSINGS = (
    "That is wording {nth}.",
    "Ask again and I will put it differently; this was answer {nth}.",
    "So much for attempt {nth}.",
)

_CITIES = re.compile(r"\bin ([A-Z]\w+)(?:,? and (?:in )?([A-Z]\w+))?")


class Refused(Exception):
    """A request that gets an error status.

    Args:
        status: The HTTP status.
        message: One sentence for the caller.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        error: dict[str, Json] = {"message": message, "type": "invalid_request_error"}
        self.document: dict[str, Json] = {"error": {**error, "param": None, "code": None}}


def find_answer(
    route: str, headers: Mapping[str, str], body: bytes, nth: int, words: str | None = None
) -> dict[str, Json] | Completion:
    """Return the answer to one request.

    Args:
        route: Method and path: ``"POST /v1/chat/completions"``.
        headers: The request headers by lower-case name.
        body: The request body.
        nth: The number of the request, which chooses the wording.
        words: The text to answer with instead.

    Raises:
        Refused: There is no answer, as the real API would have it.
    """
    # Azure takes a header of its own.
    if not (headers.get("authorization") or headers.get("api-key")):
        raise Refused(401, "You did not provide an API key: send an Authorization header, any will do.")
    if route == "GET /v1/models":
        return _model_list()
    # By their end: others have them at /openai/v1 (groq), or below /openai/deployments/... (Azure).
    if not (route.startswith("POST ") and route.endswith(("/chat/completions", "/embeddings"))):
        raise Refused(404, f"Invalid URL ({route}): this stand-in knows chat, embeddings and models.")
    try:
        document = json.loads(body)
    except ValueError:
        raise Refused(400, "We could not parse the JSON body of your request.") from None
    if not isinstance(document, dict):
        raise Refused(400, "The body must be a JSON object.")
    if not isinstance(document.get("model"), str):
        raise Refused(400, "You must provide a model parameter.")
    if route.endswith("/embeddings"):
        return _embeddings(document)
    messages = document.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise Refused(400, "'messages' must be a list of objects.")
    if not messages:
        raise Refused(400, "'messages' must hold at least one message.")
    return Completion(document, messages, nth, words)


def encode(document: dict[str, Json]) -> bytes:
    """Return a document as the server sends it: compact, and text as UTF-8."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class _Choice(NamedTuple):
    """One answer: its words or its tool calls, never both."""

    words: str
    calls: list[tuple[str, str, str]]  # id, function name, arguments as text
    finish: str


class Completion:
    """A chat completion, plain or streamed.

    Args:
        body: The request.
        messages: Its messages, at least one.
        nth: The number of the request.
        words: The text to answer with, or ``None`` for the usual one.
    """

    def __init__(self, body: dict[str, Json], messages: list[Json], nth: int, words: str | None) -> None:
        self.is_stream = body.get("stream") is True
        options = body.get("stream_options")
        self._streams_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._head: dict[str, Json] = {
            "id": f"chatcmpl-standin{nth:08d}",
            "created": int(time.time()),
            "model": body.get("model"),
            "system_fingerprint": "fp_stand_in",
        }
        count = body.get("n")
        choices = count if isinstance(count, int) and count > 0 else 1
        self._choices = [_choose(body, messages, nth, index, words) for index in range(choices)]
        texts = [
            text for choice in self._choices for text in (choice.words, *(call[2] for call in choice.calls))
        ]
        self.tokens = sum(len(_tokens(text)) for text in texts)
        asked = sum(len(_tokens(_text_of(message))) + 4 for message in messages)
        self._usage: dict[str, Json] = {
            "prompt_tokens": asked,
            "completion_tokens": self.tokens,
            "total_tokens": asked + self.tokens,
        }

    def whole(self) -> dict[str, Json]:
        """Return the plain answer."""
        choices: list[Json] = []
        for index, choice in enumerate(self._choices):
            message: dict[str, Json] = {"role": "assistant", "content": choice.words, "refusal": None}
            if choice.calls:
                message["content"] = None
                message["tool_calls"] = [
                    {"id": name, "type": "function", "function": {"name": function, "arguments": arguments}}
                    for name, function, arguments in choice.calls
                ]
            choices.append(
                {"index": index, "message": message, "logprobs": None, "finish_reason": choice.finish}
            )
        return {"object": "chat.completion", **self._head, "choices": choices, "usage": self._usage}

    def events(self) -> Iterator[bytes]:
        """Yield the events of the stream; choices take turns, token by token, as a real server's do."""
        waiting = [self._deltas(index, choice) for index, choice in enumerate(self._choices)]
        while waiting:
            for deltas in list(waiting):
                choice = next(deltas, None)
                if choice is None:
                    waiting.remove(deltas)
                else:
                    yield self._event([choice])
        if self._streams_usage:
            yield self._event([], self._usage)
        yield b"data: [DONE]\n\n"

    def _deltas(self, index: int, choice: _Choice) -> Iterator[Json]:
        def piece(delta: dict[str, Json], finish: str | None = None) -> Json:
            return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}

        yield piece({"role": "assistant", "content": None if choice.calls else "", "refusal": None})
        for token in _tokens(choice.words):
            yield piece({"content": token})
        for number, (name, function, arguments) in enumerate(choice.calls):
            opening: dict[str, Json] = {"name": function, "arguments": ""}
            call: dict[str, Json] = {"index": number, "id": name, "type": "function", "function": opening}
            yield piece({"tool_calls": [call]})
            for token in _tokens(arguments):
                yield piece({"tool_calls": [{"index": number, "function": {"arguments": token}}]})
        yield piece({}, choice.finish)

    def _event(self, choices: list[Json], usage: dict[str, Json] | None = None) -> bytes:
        document: dict[str, Json] = {"object": "chat.completion.chunk", **self._head, "choices": choices}
        if self._streams_usage:
            document["usage"] = usage
        return b"data: " + encode(document) + b"\n\n"


def _choose(body: dict[str, Json], messages: list[Json], nth: int, index: int, words: str | None) -> _Choice:
    """Return one choice: a call of the weather tool where that is what was asked for, else words."""
    question = _text_of(messages[-1])
    if words is None:
        calls = [
            (_call_id(nth, index, number), function, arguments)
            for number, (function, arguments) in enumerate(_tool_calls(body, messages[-1]))
        ]
        if calls:
            return _Choice("", calls, "tool_calls")
        chosen = " ".join(said[(nth + index) % len(said)] for said in (_OPENINGS, _MIDDLES, _CLOSINGS))
        words = chosen.format(question=_shorten(question), nth=f"{nth}, choice {index}" if index else nth)
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    tokens = _tokens(words)
    if isinstance(limit, int) and len(tokens) > limit:
        return _Choice("".join(tokens[:limit]), [], "length")
    return _Choice(words, [], "stop")


def _tool_calls(body: dict[str, Json], last: Json) -> list[tuple[str, str]]:
    """Return function and arguments for each city whose weather the user's last message asks for."""
    question = _text_of(last)
    is_user = isinstance(last, dict) and last.get("role") == "user"
    tool = _offered_tool(body.get("tools"))
    if tool is None or not is_user or body.get("tool_choice") == "none" or "weather" not in question.lower():
        return []
    found = _CITIES.search(question)
    cities = [city for city in found.groups() if city] if found else ["Paris"]
    if body.get("parallel_tool_calls") is False:
        del cities[1:]
    function, parameter = tool
    return [(function, json.dumps({parameter: city}, ensure_ascii=False)) for city in cities]


def _offered_tool(tools: Json) -> tuple[str, str] | None:
    """Return name and first parameter of the function to call: the one about weather, else the first."""
    functions: list[dict[str, Json]] = []
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict):
            functions.append(function)
    if not functions:
        return None
    chosen = next((each for each in functions if "weather" in str(each.get("name"))), functions[0])
    parameters = chosen.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    return str(chosen.get("name")), next(iter(properties), "city") if isinstance(properties, dict) else "city"


def _call_id(*numbers: int) -> str:
    """Return a tool-call id that looks as random as a real one."""
    return "call_" + hashlib.sha256(repr(numbers).encode()).hexdigest()[:24]


def _text_of(message: Json) -> str:
    """Return the text of a message, its text parts joined."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _tokens(text: str) -> list[str]:
    """Return the pieces of a text; joined they are the text."""
    return re.findall(r"\s*\S{1,6}|\s+", text)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _embeddings(body: dict[str, Json]) -> dict[str, Json]:
    """Return vectors that depend on model and input alone."""
    given = body.get("input")
    inputs: list[Json] = [given]
    # A list of numbers is one input, too: token ids.
    if isinstance(given, list) and not all(isinstance(item, int) for item in given):
        inputs = given
    dimensions = body.get("dimensions")
    size = dimensions if isinstance(dimensions, int) and dimensions > 0 else 8
    data: list[Json] = []
    for index, item in enumerate(inputs):
        packed = _vector(json.dumps([body.get("model"), item]), size)
        floats: list[Json] = list(struct.unpack(f"<{size}f", packed))
        is_base64 = body.get("encoding_format") == "base64"
        embedding: Json = base64.b64encode(packed).decode() if is_base64 else floats
        data.append({"object": "embedding", "index": index, "embedding": embedding})
    tokens = sum(len(item) if isinstance(item, list) else len(_tokens(str(item))) for item in inputs)
    usage: dict[str, Json] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.get("model"), "usage": usage}


def _vector(seed: str, size: int) -> bytes:
    """Return a vector of length 1 as little-endian 32-bit floats."""
    digests = (hashlib.sha256(f"{index} {seed}".encode()).digest() for index in range(size))
    numbers = [int.from_bytes(digest[:4], "big") / 2**31 - 1 for digest in digests]
    length = sum(number * number for number in numbers) ** 0.5
    return struct.pack(f"<{size}f", *(number / length for number in numbers))


def _model_list() -> dict[str, Json]:
    models: list[Json] = [
        {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "stand-in"} for name in MODELS
    ]
    return {"object": "list", "data": models}
