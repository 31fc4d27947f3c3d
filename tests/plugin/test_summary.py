"""The line at the end of a run: what its calls did, and what the recordings saved."""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import _price
from httpx_cassette._call import Json
from httpx_cassette._price import PriceTable, price_table
from httpx_cassette._recording import NewRecording, Recording
from httpx_cassette._usage import Usage, usage_of
from httpx_cassette.pytest_plugin import _telling
from httpx_cassette.pytest_plugin._suite import Stopped, Suite, Use
from tests._recordings import AT, head_of_line, key_of
from tests.plugin.conftest import Tested
from tests.plugin.programs.calls import record
from tests.stream_proof import CORPUS, with_corpus

with_prices = pytest.mark.skipif(
    not importlib.util.find_spec("genai_prices"), reason="genai-prices is not installed: it needs Python 3.11"
)

URL = "https://api.openai.com/v1/chat/completions"


def recording(response: dict[str, Json], url: str = URL, body: Json = None) -> Recording:
    """Return a recording of an answer."""
    line = NewRecording(
        key=key_of("a"),
        sample=0,
        at=AT,
        dialect="openai-chat",
        finish="stop",
        milliseconds=812,
        response={"status": 200, "headers": {}, **response},
        request={"method": "POST", "url": url, "json": body},
    ).line(0, 1)
    return Recording(line, "c.jsonl", 1, head_of_line(line))


# -- what an answer says of its tokens -----------------------------------------------------------------

ANSWERS: dict[str, tuple[Json, tuple[Any, ...]]] = {
    "openai-chat": (
        {
            "model": "gpt-4o-2024-08-06",
            "usage": {
                "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
        },
        (9, 5, 4, "gpt-4o-2024-08-06"),
    ),
    "openai-responses": (
        {
            "model": "gpt-5",
            "usage": {"input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}},
        },
        (9, 5, 4, "gpt-5"),
    ),
    "anthropic-messages": (
        {
            "model": "claude-sonnet-4-5",
            "usage": {
                "input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
                "cache_creation": {"ephemeral_5m_input_tokens": 15, "ephemeral_1h_input_tokens": 5},
                "output_tokens": 7,
            },
        },
        (123, 7, 100, "claude-sonnet-4-5", 20, 5),
    ),
    "anthropic by a gateway of chat": (
        {
            "model": "claude-sonnet-4-5",
            "usage": {
                "prompt_tokens": 123, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 100},
                "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
            },
        },
        (123, 7, 100, "claude-sonnet-4-5", 20),
    ),
    "anthropic by a gateway of responses": (
        {
            "model": "claude-sonnet-4-5",
            "usage": {
                "input_tokens": 123, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 100},
                "cache_read_input_tokens": 100,
            },
        },
        (123, 7, 100, "claude-sonnet-4-5"),
    ),
    "gemini": (
        {
            "modelVersion": "gemini-2.5-pro",
            "usageMetadata": {
                "promptTokenCount": 8, "candidatesTokenCount": 5, "thoughtsTokenCount": 30,
                "cachedContentTokenCount": 2, "toolUsePromptTokenCount": 1,
            },
        },
        (9, 35, 2, "gemini-2.5-pro"),
    ),
    "gemini-interactions": (
        {"interaction": {"model": "gemini-3", "usage": {"total_input_tokens": 4, "total_output_tokens": 6}}},
        (4, 6, 0, "gemini-3"),
    ),
    "cohere": (
        {
            "usage": {
                "billed_units": {"input_tokens": 11.0, "output_tokens": 1.0},
                "tokens": {"input_tokens": 506.0, "output_tokens": 4.0},
            }
        },
        (11, 1, 0, "asked for"),
    ),
    "cohere-rerank": (
        {"usage": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 5, "output_tokens": 0}}},
        (5, 0, 0, "asked for"),
    ),
    "mistral": (
        {"model": "mistral-small", "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
        (4, 2, 0, "mistral-small"),
    ),
    "ollama": (
        {"model": "llama3.2", "prompt_eval_count": 26, "eval_count": 10, "eval_duration": 12},
        (26, 10, 0, "llama3.2"),
    ),
    "bedrock": (
        {
            "output": {"message": {}},
            "usage": {
                "inputTokens": 3, "outputTokens": 121, "totalTokens": 2072,
                "cacheReadInputTokens": 1712, "cacheReadInputTokenCount": 1712,
                "cacheWriteInputTokens": 236, "cacheWriteInputTokenCount": 236,
                "cacheDetails": [
                    {"inputTokens": 36, "ttl": "1h"}, {"inputTokens": 200, "ttl": "5m"}, {"ttl": "1h"}, 7
                ],
            },
        },
        (1951, 121, 1712, "asked for", 236, 36),
    ),
    "nova": (
        {"usage": {"inputTokens": 3, "outputTokens": 2, "cacheReadInputTokenCount": 5}},
        (8, 2, 5, "asked for"),
    ),
    "groq": (
        {"model": "llama-3.3", "x_groq": {"usage": {"prompt_tokens": 4, "completion_tokens": 2}}},
        (4, 2, 0, "llama-3.3"),
    ),
    "workers-ai": (
        {"result": {"response": "Yes.", "usage": {"prompt_tokens": 4, "completion_tokens": 2}}},
        (4, 2, 0, "asked for"),
    ),
    "embeddings": ({"model": "embedding-3", "usage": {"prompt_tokens": 16}}, (16, None, 0, "embedding-3")),
    "nothing": ({"model": "gpt-4o"}, (None, None, 0, "gpt-4o")),
    "nonsense": (
        {"model": 7, "usage": {"prompt_tokens": "9", "completion_tokens": True, "prompt_tokens_details": 3}},
        (None, None, 0, "asked for"),
    ),
    "negative": ({"usage": {"prompt_tokens": -1, "completion_tokens": 1e400}}, (None, None, 0, "asked for")),
    "a list": ([{"usage": {"prompt_tokens": 9}}], (None, None, 0, "asked for")),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_every_format_says_what_an_answer_cost(answer: Json, expected: tuple[Any, ...]) -> None:
    """Tokens as the provider counted them; what is not said, or is no count, is not guessed."""
    found = usage_of(
        recording(
            {"json": json.loads(json.dumps(answer).replace("Infinity", "-3"))}, body={"model": "asked for"}
        )
    )

    assert (*expected[:4], URL, *expected[4:], 0, 0)[:7] == found


def script(*events: Json) -> dict[str, Json]:
    """Return a response that was streamed."""
    return {"script": [{"json": event} for event in events], "framing": "sse", "stored": "assembled"}


STREAMS: dict[str, tuple[list[Json], tuple[int | None, int | None, int, str]]] = {
    "openai-chat": (
        [
            {"model": "gpt-4o", "choices": [{"delta": {"content": "a"}}], "usage": None},
            {"model": "gpt-4o", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}},
        ],
        (9, 5, 0, "gpt-4o"),
    ),
    "openai-responses": (
        [
            {"type": "response.created", "response": {"model": "gpt-5", "usage": None}},
            {
                "type": "response.completed",
                "response": {"model": "gpt-5", "usage": {"input_tokens": 9, "output_tokens": 5}},
            },
        ],
        (9, 5, 0, "gpt-5"),
    ),
    "anthropic-messages": (
        [
            {
                "type": "message_start",
                "message": {
                    "model": "claude",
                    "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 1},
                },
            },
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        ],
        (13, 7, 10, "claude"),
    ),
    "gemini": (
        [
            {"modelVersion": "gemini", "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 1}},
            {"modelVersion": "gemini", "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 5}},
        ],
        (8, 5, 0, "gemini"),
    ),
    "cohere": (
        [
            {"type": "content-delta", "delta": {"message": {"content": {"text": "a"}}}},
            {
                "type": "message-end",
                "delta": {"usage": {"billed_units": {"input_tokens": 1, "output_tokens": 2}}},
            },
        ],
        (1, 2, 0, ""),
    ),
    "bedrock": (
        [
            {"contentBlockIndex": 0, "delta": {"text": "a"}},
            {"stopReason": "end_turn"},
            {"usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}, "metrics": {"latencyMs": 1}},
        ],
        (7, 2, 0, ""),
    ),
    "nova": (
        [
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}}},
            {"metadata": {"usage": {"inputTokens": 7, "outputTokens": 2}}},
        ],
        (7, 2, 0, ""),
    ),
    "ollama": (
        [
            {"model": "llama3.2", "message": {"content": "a"}, "done": False},
            {"model": "llama3.2", "done": True, "prompt_eval_count": 26, "eval_count": 10},
        ],
        (26, 10, 0, "llama3.2"),
    ),
}


@pytest.mark.parametrize(("events", "expected"), STREAMS.values(), ids=STREAMS)
def test_the_last_word_of_a_stream_counts(
    events: list[Json], expected: tuple[int | None, int | None, int, str]
) -> None:
    """Running totals are not added up."""
    assert Usage(*expected, URL) == usage_of(recording(script(*events)))


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("us.amazon.nova-micro-v1%3A0/converse", "us.amazon.nova-micro-v1:0"),
        ("anthropic.claude-v2:1/converse-stream", "anthropic.claude-v2:1"),
        ("meta.llama3-70b-instruct-v1%3A0/invoke", "meta.llama3-70b-instruct-v1:0"),
        ("gpt-4o/other", ""),
    ],
)
def test_the_model_may_stand_in_the_address(path: str, model: str) -> None:
    """Of Bedrock, whose answers do not say it."""
    url = f"https://bedrock-runtime.us-east-1.amazonaws.com/model/{path}"

    assert Usage(None, None, 0, model, url) == usage_of(recording({"json": {}}, url, {}))


@pytest.mark.parametrize(
    "response", [{"text": "Yes."}, {"text": "{}{}"}, {"base64": "eWVz"}], ids=["text", "lines", "bytes"]
)
def test_what_is_no_json_says_nothing(response: dict[str, Json]) -> None:
    """Audio and plain text have no usage; the model is that of the request."""
    found = usage_of(recording(response, url=f"{URL}?key=1", body={"model": "tts-1"}))

    assert Usage(None, None, 0, "tts-1", URL) == found


def test_json_that_is_stored_as_text_says_what_it_cost() -> None:
    """Embeddings come indented, with numbers written in their own way."""
    text = '{\n  "model": "text-embedding-3-small", "usage": {"prompt_tokens": 7, "total_tokens": 7}}'
    found = usage_of(recording({"text": text}))

    assert (7, None, "text-embedding-3-small") == (found.input_tokens, found.output_tokens, found.model)


def test_a_recording_that_cannot_be_read_says_nothing() -> None:
    """It is none that a call was answered from."""
    line = b'{"v":1,"kv":1,"key":"%s","sample":0,"gen":0,"at":"x","response":7}' % key_of("a").hex().encode()

    assert Usage(None, None, 0, "", "") == usage_of(Recording(line, "c.jsonl", 1, head_of_line(line)))


#: The files of recorded traffic, and how genai-prices names what stands in them.
SECOND_OPINIONS = {
    "openai-chat": ("openai", "chat"),
    "openai-responses": ("openai", "responses"),
    "anthropic-messages": ("anthropic", "default"),
    "gemini-generate": ("google", "default"),
    "mistral-chat": ("mistral", "default"),
    "groq-chat": ("groq", "default"),
    "cohere-chat": ("cohere", "default"),
    "bedrock-converse": ("aws", "default"),
}


@with_corpus
@with_prices
@pytest.mark.parametrize("name", SECOND_OPINIONS)
def test_genai_prices_counts_alike(name: str) -> None:
    """Of real answers both read the same, wherever genai-prices reads anything."""
    from genai_prices import extract_usage

    provider, flavour = SECOND_OPINIONS[name]
    compared = 0
    for line in (CORPUS / f"{name}.jsonl").read_text("utf-8").splitlines():
        exchange = json.loads(line)
        text = exchange["response"].get("body_text", "")
        if exchange["response"]["status"] != 200 or not text.startswith("{") or "\ndata" in text:
            continue
        try:
            answer = json.loads(text)
            other = extract_usage(answer, provider_id=provider, api_flavor=flavour).usage
        except (ValueError, LookupError, AttributeError):
            continue  # Several documents, or one without usage.
        found = usage_of(recording({"json": answer}, exchange["request"]["url"], exchange["request"]["body"]))
        compared += 1
        counted = (other.input_tokens, other.output_tokens, other.cache_read_tokens, other.cache_write_tokens)
        read = (found.input_tokens, found.output_tokens, found.cached_tokens, found.written_tokens)
        assert [each or 0 for each in counted] == [each or 0 for each in read], exchange["id"]

    assert compared > 20


# -- money ---------------------------------------------------------------------------------------------


@with_prices
def test_known_models_have_a_price() -> None:
    """That of the provider whose address was called, when it was called."""
    table = price_table()
    assert table is not None

    assert Decimal("0.0045") == table.cost(Usage(1_000, 200, 0, "gpt-4o-2024-08-06", URL), AT)
    assert Decimal("0.0040") == table.cost(Usage(1_000, 200, 400, "gpt-4o-2024-08-06", URL), AT)
    assert Decimal("0.0045") == table.cost(
        Usage(1_000, 200, 0, "gpt-4o-2024-08-06", URL), "2026-11-29T12:00:00"
    )
    embeddings = Usage(1_000, None, 0, "text-embedding-3-small", "https://api.openai.com/v1/embeddings")
    assert Decimal("0.00002") == table.cost(embeddings, AT)


#: For a million tokens: $3 asked, $15 answered, $0.30 read from a cache, $3.75 written to it, $6 for an hour.
CLAUDE = ("claude-sonnet-4-5", "https://api.anthropic.com/v1/messages")

CACHES = {
    "read": ({"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 10}, "0.002880"),
    "written": ({"input_tokens": 900, "cache_creation_input_tokens": 100, "output_tokens": 10}, "0.003225"),
    "for an hour": (
        {
            "input_tokens": 900, "cache_creation_input_tokens": 100, "output_tokens": 10,
            "cache_creation": {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 60},
        },
        "0.003360",
    ),
    "by a gateway": (
        {
            "prompt_tokens": 1_000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 100},
            "cache_read_input_tokens": 100,
        },
        "0.002880",
    ),
}  # fmt: skip


@with_prices
@pytest.mark.parametrize(("said", "price"), CACHES.values(), ids=CACHES)
def test_tokens_of_a_cache_have_prices_of_their_own(said: dict[str, Json], price: str) -> None:
    """What is written costs more than what is asked, what is read less; none is counted twice."""
    table = price_table()
    assert table is not None
    usage = usage_of(recording({"json": {"model": CLAUDE[0], "usage": said}}, CLAUDE[1]))

    assert Decimal(price) == table.cost(usage, AT)


@with_prices
@pytest.mark.parametrize(
    ("usage", "at"),
    [
        (Usage(1_000, 200, 0, "gpt-of-next-year", URL), AT),
        (Usage(1_000, 200, 0, "gpt-4o", "http://127.0.0.1:8000/v1/chat/completions"), AT),
        (Usage(1_000, 200, 0, "gpt-4o", "https://gateway.example.com/v1/chat/completions"), AT),
        (Usage(1_000, 200, 0, "", URL), AT),
        (Usage(None, 200, 0, "gpt-4o", URL), AT),
        (Usage(1_000, 200, 0, "gpt-4o", URL), "last summer"),
        (Usage(1_000, 200, 0, "gpt-4o", ""), AT),
        (Usage(1_000, None, 0, "gpt-4o", URL), AT),
        (Usage(1_000, 200, 1_001, "gpt-4o", URL), AT),
        (Usage(1_000, 200, 900, *CLAUDE, 101), AT),
    ],
    ids=[
        "model",
        "loopback",
        "gateway",
        "no model",
        "no tokens",
        "no time",
        "no address",
        "no answer",
        "more read than asked",
        "more cached than asked",
    ],
)
def test_no_price_is_guessed(usage: Usage, at: str) -> None:
    """Neither for models nor for addresses that the table does not know, nor for half of the tokens."""
    table = price_table()

    assert table is not None
    assert table.cost(usage, at) is None


@with_prices
def test_the_table_has_a_date() -> None:
    """The version that is installed, and its newest price that is in force."""
    table = price_table()

    assert table is not None
    assert re.fullmatch(r"genai-prices [\d.]+, newest price of \d{4}-\d\d-\d\d", table.name)


def test_without_the_extra_there_are_no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said of money where the extra is not installed."""
    monkeypatch.setitem(__import__("sys").modules, "genai_prices", None)

    assert _price.price_table() is None


# -- the lines -----------------------------------------------------------------------------------------


class Prices(PriceTable):
    """Know one model: a dollar for each thousand tokens that were asked."""

    name = "genai-prices 1, newest price of 2026-11-09"

    def __init__(self) -> None:
        pass

    def cost(self, usage: Usage, at: str) -> Decimal | None:
        """Return the price."""
        if usage.input_tokens is None or usage.model != "known":
            return None
        return Decimal(usage.input_tokens) / 1000


def use(line: int, model: str = "known", *, replayed: int = 1, asked: int | None = 1_000, **more: Any) -> Use:
    """Return a recording that was used."""
    usage = Usage(asked, more.pop("answered", 200) if asked else None, 0, model, URL)
    at = more.pop("at", datetime.datetime.now(datetime.timezone.utc).isoformat())
    return Use("c.jsonl", line, "f" * 64, at, more.pop("milliseconds", 500), tuple(usage), replayed, **more)


def lines(*uses: Use, stopped: tuple[Stopped, ...] = (), **totals: int) -> list[str]:
    """Return the summary of a run."""
    suite = Suite(
        totals=Counter(totals), uses={(each.path, each.number, each.fingerprint): each for each in uses}
    )
    return _telling.summary(suite, stopped)


@pytest.fixture
def prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one price."""
    monkeypatch.setattr(_price, "price_table", Prices)


@pytest.fixture
def no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no prices installed."""
    monkeypatch.setattr(_price, "price_table", lambda: None)


def test_calls_are_counted_by_what_became_of_them(no_prices: None) -> None:
    """Real calls are those that were made, stored or not, and those to passthrough hosts."""
    missed = (Stopped("CassetteMiss", "", 1_200, ("a",)), Stopped("SystemPromptMissing", "", 3, ("a",)))

    assert ["1,000 replayed, 2 recorded, 1,200 missed, 6 real calls"] == lines(
        replayed=1_000, recorded=2, live=4, passed=2, missed=7, stopped=missed
    )
    assert ["0 replayed, 1 recorded, 0 missed, 1 real call"] == lines(
        use(1, replayed=0, recorded=True), recorded=1, live=1
    )


def test_what_was_saved_is_that_of_every_replay(no_prices: None) -> None:
    """A recording that answers three calls saves three times what it cost."""
    assert (
        "saved 4,800 tokens and 2.0 s; oldest recording used: today" == lines(use(1, replayed=3), use(2))[1]
    )


def test_what_says_no_tokens_is_not_counted_as_none(no_prices: None) -> None:
    """Beside others it is named, once for each answer; alone, only the time is told."""
    told = [
        lines(use(1, asked=None))[1],
        lines(use(1), use(2, asked=None))[1],
        lines(use(1), use(2, asked=None, replayed=3))[1],
        lines(use(1, asked=1, answered=0))[1],
    ]

    assert [
        "saved 0.5 s; oldest recording used: today",
        "saved 1,200 tokens (1 answer says none) and 1.0 s; oldest recording used: today",
        "saved 1,200 tokens (3 answers say none) and 2.0 s; oldest recording used: today",
        "saved 1 token and 0.5 s; oldest recording used: today",
    ] == told


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0.0 s"),
        (59_940, "59.9 s"),
        (60_000, "1 min 0 s"),
        (3_600_000, "1 h 0 min"),
        (90_061_000, "25 h 1 min"),
    ],
)
def test_seconds_are_told_in_words_of_their_size(no_prices: None, milliseconds: int, text: str) -> None:
    """Hours where there are any."""
    told = lines(use(1, milliseconds=milliseconds))[1]

    assert f"saved 1,200 tokens and {text}; oldest recording used: today" == told


@pytest.mark.parametrize(
    ("at", "age"),
    [
        (datetime.timedelta(hours=23), "today"),
        (datetime.timedelta(days=1, hours=1), "1 day old"),
        (datetime.timedelta(days=1_234, hours=1), "1,234 days old"),
        ("last summer", "last summer"),
        ("2026-01-01", "2026-01-01"),
    ],
    ids=str,
)
def test_the_oldest_recording_has_an_age(no_prices: None, at: datetime.timedelta | str, age: str) -> None:
    """Of those that were used; one that was edited is told as it stands."""
    now = datetime.datetime.now(datetime.timezone.utc)
    text = at if isinstance(at, str) else (now - at).strftime("%Y-%m-%dT%H:%M:%SZ")

    assert f"saved 1,200 tokens and 0.5 s; oldest recording used: {age}" == lines(use(1, at=text))[1]


@pytest.mark.parametrize(
    ("uses", "money"),
    [
        ((use(1),), "$1.00 by genai-prices 1, newest price of 2026-11-09"),
        ((use(1, asked=2),), "$0.0020 by genai-prices 1, newest price of 2026-11-09"),
        ((use(1, replayed=2_000),), "$2,000.00 by genai-prices 1, newest price of 2026-11-09"),
        (
            (use(1), use(2, "unknown", replayed=3)),
            "$1.00 by genai-prices 1, newest price of 2026-11-09, "
            "without 3 of 4 calls that it has no price for (unknown)",
        ),
        ((use(1, "unknown"),), "no price for unknown in genai-prices 1, newest price of 2026-11-09"),
        (
            tuple(use(number, f"{name}\x1b") for number, name in enumerate("dbcabe", 1)),
            "no price for a\\u001b, b\\u001b, c\\u001b and 2 more in genai-prices 1, "
            "newest price of 2026-11-09",
        ),
        ((use(1, asked=None),), "no price in genai-prices 1, newest price of 2026-11-09"),
        (
            (use(1), use(2, asked=None)),
            "$1.00 by genai-prices 1, newest price of 2026-11-09, "
            "without 1 of 2 calls that it has no price for",
        ),
    ],
    ids=[
        "one",
        "cents",
        "many",
        "some unknown",
        "unknown",
        "many unknown",
        "not counted",
        "some not counted",
    ],
)
def test_money_is_told_with_the_table_it_is_from(prices: None, uses: tuple[Use, ...], money: str) -> None:
    """What has no price is counted, and not estimated."""
    assert money == lines(*uses)[1].split("; ")[1]


def test_the_summary_stands_at_the_end(tested: Tested) -> None:
    """In a section of its own, with what was not recorded before it."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    import httpx

    def broken(request):
        return httpx.Response(500)

    @pytest.mark.cassette
    def test_first():
        ask()

    @pytest.mark.cassette("other", mode="record", next_transport=httpx.MockTransport(broken))
    def test_second():
        import httpx
        with httpx.Client() as client:
            for _ in range(2):
                client.post(URL, json=body("b"))
    """
    )

    assert (
        "== httpx_cassette: real calls that were not recorded\n"
        "test_it.py::test_second: POST http://127.0.0.1:9/v1/chat/completions answered 500; only finished "
        "2xx and 3xx answers are stored (record_statuses= stores others) (2 times)\n"
        "== httpx_cassette\n"
        "1 replayed, 0 recorded, 0 missed, 2 real calls\n"
        "saved 1,200 tokens and 0.0 s; oldest recording used: today\n"
        "2 passed in <time>\n"
    ) == ended.told
    assert Path("cassettes/test_it.jsonl").exists()
