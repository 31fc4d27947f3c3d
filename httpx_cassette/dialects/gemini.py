"""Google's generateContent and streamGenerateContent: the Gemini API, and Gemini on Vertex.

Names are in ProtoJSON (https://protobuf.dev/programming-guides/json/): its parsers take ``systemInstruction``
and ``system_instruction`` alike, so both are looked for everywhere. They are two spellings in the key all the
same: which objects are messages and which the user's own data (arguments, schemas, labels), no table says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from .._call import Json
from .._paths import Paths
from .._rules import is_blank
from ._dialect import Dialect, Endpoint, Folds, Pieces, SystemPrompt, unasked
from ._framing import Event
from ._reading import Noise, StreamTable

__all__ = ["GEMINI", "STREAM"]

# -- the request ---------------------------------------------------------------------------------------


def _spellings(*paths: str) -> list[str]:
    """Return paths in both spellings."""
    snake = [re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", path) for path in paths]
    return list(dict.fromkeys([*paths, *snake]))


# Defaults: ai.google.dev/api/generate-content, GenerationConfig ("If unset, this will default to 1";
# "text/plain: (default)"), and ai.google.dev/api/caching, FunctionCallingConfig ("If unspecified, the default
# value will be set to AUTO"). All that is left, temperature and token limits first, depends on the model.
_GENERATION_DEFAULTS: Mapping[str, Json] = {
    "candidateCount": 1,
    "candidate_count": 1,
    "responseMimeType": "text/plain",
    "response_mime_type": "text/plain",
}
_TOOL_DEFAULTS: Mapping[str, Json] = {
    "functionCallingConfig": {"mode": "AUTO"},
    "function_calling_config": {"mode": "AUTO"},
}

# ProtoJSON: null is accepted for every field, and is its default. An empty list is one that was not sent.
_EMPTY = frozenset(
    _spellings(
        "generationConfig",  # google-genai sends an empty one for a config that sets nothing in it
        "labels",
        "safetySettings",
        "toolConfig",
        "tools",
    )
)
_NULL = _EMPTY | frozenset(_spellings("cachedContent", "model", "systemInstruction"))
_EMPTY_BELOW = Paths(
    f"{config}.{name}"
    for config in _spellings("generationConfig")
    for name in _spellings(
        "candidateCount",
        "frequencyPenalty",
        "logprobs",
        "maxOutputTokens",
        "presencePenalty",
        "responseLogprobs",
        "responseMimeType",
        "responseModalities",
        "seed",
        "stopSequences",
        "temperature",
        "topK",
        "topP",
    )
)

# One element may stand for a list of one: so write the examples of Vertex's documentation.
_CONTENTS = ("contents[*]", "contents")
_INSTRUCTIONS = ("systemInstruction", "system_instruction")
_PARTS = [f"{content}.{parts}" for content in _CONTENTS for parts in ("parts[*]", "parts")]

#: A signature that the model gives and expects back, to the part that it came with.
_SIGNATURES = frozenset(_spellings("thoughtSignature"))

#: What comes back to the byte: signatures, and media, whose base64 may look like anything.
_SEALED = _spellings("thoughtSignature", "inlineData.data")

_CALLS = ("functionCall", "executableCode", "toolCall")
_ANSWERS = ("functionResponse", "codeExecutionResult", "toolResponse")


def _ids(*holders: str) -> list[str]:
    return _spellings(*(f"{_PARTS[0]}.{holder}.id" for holder in holders))


#: Types of google-genai, McpServer, AuthConfig and ParallelAiSearch: what Google sends to somebody else.
_CREDENTIALS = Paths(
    _spellings(
        "tools[*].mcpServers[*].streamableHttpTransport.headers",
        "tools[*].googleMaps.authConfig",
        "tools[*].parallelAiSearch.apiKey",
        "tools[*].retrieval.externalApi.apiAuth",
    ),
    late=True,
)


def _says_nothing(body: dict[str, Json]) -> bool:
    """Tell whether speech or an image is asked for, and no text: such models take no system instruction.

    Source: ai.google.dev/gemini-api/docs/speech-generation and /image-generation.
    """
    for config in map(body.get, _spellings("generationConfig")):
        for asked in map(config.get, _spellings("responseModalities")) if isinstance(config, dict) else ():
            if isinstance(asked, list) and asked and "TEXT" not in [str(each).upper() for each in asked]:
                return True
    return False


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    if _says_nothing(body):
        return None
    for name in _spellings("cachedContent"):
        cached = body.get(name)
        if isinstance(cached, str) and not is_blank(cached):
            return None  # The system prompt may live in the cache, and need not then be sent.
    found = None
    for name in _INSTRUCTIONS:
        if body.get(name) is not None:
            if _has_text(body[name]):
                return None
            found = f"a {name} whose text is blank"
    if anywhere:
        contents = body.get("contents")
        for content in contents if isinstance(contents, list) else ():
            if isinstance(content, dict) and content.get("role") == "system" and _has_text(content):
                return None
    return found or "no systemInstruction"


def _has_text(value: Json) -> bool:
    """Tell whether a content, its parts, or a text alone says something."""
    if isinstance(value, str):
        return not is_blank(value)
    if isinstance(value, list):
        return any(_has_text(part) for part in value)
    if isinstance(value, dict):
        return _has_text(value.get("text")) or _has_text(value.get("parts"))
    return False


# -- the answer ----------------------------------------------------------------------------------------

#: The first of every enumeration, by name and, with ``$alt=json;enum-encoding=int``, by number: nothing said.
_UNSPECIFIED = (
    None,
    "",
    0,
    "FINISH_REASON_UNSPECIFIED",
    "BLOCK_REASON_UNSPECIFIED",
    "BLOCKED_REASON_UNSPECIFIED",
)


def _finishes(answer: Json) -> Iterator[tuple[int, Json]]:
    """Yield the index of each candidate with its finish reason, or ``None``."""
    listed = answer.get("candidates") if isinstance(answer, dict) else None
    candidates = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    # ProtoJSON leaves out what is zero; where no candidate has an index, its position is all there is.
    has_index = any(isinstance(each.get("index"), int) for each in candidates)
    for position, candidate in enumerate(candidates):
        index = candidate.get("index")
        reason = candidate.get("finishReason")
        yield (
            index if isinstance(index, int) else 0 if has_index else position,
            None if reason in _UNSPECIFIED else reason,
        )


def _block(answer: Json) -> Json:
    """Return why a prompt was refused: there are no candidates then."""
    feedback = answer.get("promptFeedback") if isinstance(answer, dict) else None
    reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
    return None if reason in _UNSPECIFIED else reason


def _finish(answer: Json) -> Json:
    reasons = [reason for _, reason in sorted(_finishes(answer), key=lambda pair: pair[0])]
    return _one_or_all(reasons) or _block(answer)


def _one_or_all(reasons: list[Json]) -> Json:
    return reasons[0] if len(reasons) == 1 else reasons or None


def _is_failure(answer: Json) -> bool:
    """An error with the status 200; also as the one element of an array."""
    return _find_error(answer) is not None


def _find_error(value: Json) -> Json:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and each.get("error"):
            return each["error"]
    return None


# -- its stream -----------------------------------------------------------------------------------------


class GenerateProgress:
    """How far a stream has come: no event ends it, so every candidate needs a finish reason.

    Some models give a reason in every event. A candidate that goes on behind its reason has shown that it
    marks no end, so that only the end of the body is one.
    """

    is_terminated = False

    def __init__(self) -> None:
        self.awaits_more = False
        self.error: str | None = None
        self._finishes: dict[int, Json] = {}
        self._wanted = 1
        self._block: Json = None

    @property
    def is_complete(self) -> bool:
        """Every candidate that was asked for has finished, or the prompt was refused."""
        is_known = len(self._finishes) >= self._wanted or self._block is not None
        return is_known and None not in self._finishes.values()

    def expect(self, request: Json) -> None:
        """Take note of how many candidates are asked for."""
        if not isinstance(request, dict):
            return
        for config in map(request.get, _spellings("generationConfig")):
            for count in map(config.get, _spellings("candidateCount")) if isinstance(config, dict) else ():
                if type(count) is int and count > 0:
                    self._wanted = count

    @property
    def finish(self) -> Json:
        """The finish reason; the list of them, by index, when there are several candidates."""
        return _one_or_all([self._finishes[index] for index in sorted(self._finishes)]) or self._block

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if self.error is None:
            self.error = _read_error(event, value)
        self._block = self._block or _block(value)
        for index, reason in _finishes(value):
            self.awaits_more = self.awaits_more or self._finishes.get(index) is not None
            if reason is not None or index not in self._finishes:
                self._finishes[index] = reason


def _read_error(event: Event, value: Json) -> str | None:
    """Return what an error inside a 200 says."""
    error = _find_error(value)
    if isinstance(error, dict):
        message = error.get("message")
        return message if isinstance(message, str) else str(error)
    if error is not None:
        return str(error)
    if event.event == "error":
        return event.data
    # A failing server may write the document line by line, without ``data:``: google-genai expects it to
    # (_api_client, _iter_response_stream). Such lines are fields with odd names.
    for name, text in event.extra:
        if name.strip(' \t{"') == "error":
            return text.strip(" {") or "an error without data"
    return None


_CANDIDATE = "candidates[*]"
_PART = f"{_CANDIDATE}.content.parts[*]"

#: Sources: ai.google.dev/api/generate-content, and what servers send as recorded from them. A whole
#: GenerateContentResponse in each event; role, model and ids are said again in each.
STREAM = StreamTable(
    progress=GenerateProgress,
    text=(f"{_PART}.text",),
    last=("usageMetadata",),
    # Finish reason and message, grounding, citations, ratings, log probabilities: what a candidate says
    # beside its content it says of all its text so far, and Google with the last of it.
    ends=(f"{_CANDIDATE}.*", *(f"{_PART}.{name}" for name in sorted(_SIGNATURES))),
    scope=(f"{_CANDIDATE}.index",),
    # google-genai's chats take the first candidate of each event for the answer, whatever its index.
    in_order=True,
    by_position=True,
    # Clients append part to part: nothing else says where a text goes on. A thought has a member more.
    alone=(f"{_CANDIDATE}.content.parts",),
    before_last="absent",
    opaque=tuple(f"{_PART}.{name}" for name in _SEALED),
    # Empty texts come with calls and at the end. google-genai takes a comment for JSON, and fails.
    noise=Noise(empty_deltas=True, crlf=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

GEMINI = Dialect(
    name="gemini",
    # Of the Gemini API, and on Vertex of a publisher's model, an endpoint, or in express mode. Counts,
    # embeddings and predictions are no calls of this format.
    endpoints=(
        Endpoint(":generateContent", has={"contents": (list, dict)}, wants_stream=False),
        Endpoint(":streamGenerateContent", has={"contents": (list, dict)}, wants_stream=True),
    ),
    text=Paths(
        [f"{part}.text" for part in _PARTS]
        + [f"{name}.{parts}.text" for name in _INSTRUCTIONS for parts in ("parts[*]", "parts")]
    ),
    turns=("contents",),
    prefill_roles=frozenset({"model"}),
    # ai.google.dev/gemini-api/docs/thought-signatures: all parts go back as they came.
    signed=_SIGNATURES | {"thought"},
    # google-genai, chats.send_message_stream: one content in the history for each event.
    pieces=Pieces(turns="contents", roles=frozenset({"model"}), parts="parts", ends=_SIGNATURES),
    folds=Folds(
        below=(
            (Paths(_spellings("generationConfig")), _GENERATION_DEFAULTS),
            (Paths(_spellings("toolConfig")), _TOOL_DEFAULTS),
        ),
        null=_NULL,
        empty=_EMPTY,
        empty_below=_EMPTY_BELOW,
        is_own_host=lambda host: host.endswith(".googleapis.com"),
    ),
    # Sent by newer models and by Vertex; the same at both ends, or absent at both.
    references=Paths(_ids(*_CALLS, *_ANSWERS)),
    # The calls may be in the cached content.
    held=unasked(Paths(_ids(*_ANSWERS), late=True), Paths(_ids(*_CALLS), late=True)),
    credentials=_CREDENTIALS,
    opaque=Paths((f"{part}.{name}" for part in _PARTS for name in _SEALED), late=True),
    answer_opaque=Paths((f"{_PART}.{name}" for name in _SEALED), late=True),
    # ai.google.dev/api/caching, Blob; also in the parts of a function's response.
    media=Paths(
        _spellings(
            *(f"{part}.inlineData.data" for part in _PARTS),
            *(f"{part}.functionResponse.parts[*].inlineData.data" for part in _PARTS),
        )
    ),
    system=SystemPrompt(place="systemInstruction (or cachedContent)", missing=_system_missing),
    stream=STREAM,
    # Without ``alt=sse``: one JSON array.
    other_streams=(replace(STREAM, framing="json-array", noise=Noise()),),
    finish=_finish,
    is_failure=_is_failure,
)
