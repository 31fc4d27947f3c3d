"""What a recorded exchange says, in every wire format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import httpx_cassette
from httpx_cassette import CassetteTransport
from httpx_cassette._call import Json
from httpx_cassette.dialects import DIALECTS
from httpx_cassette.readers import READERS, Message, ToolCall, read_answers, read_messages

CASES = Path(__file__).parent / "conformance" / "cases"

ASKED = [Message("system", "Be brief."), Message("user", "Weather?\n[image]")]
CALLED = Message("assistant", "One moment.", "Hm.", (ToolCall("look", '{"at": "Rome"}', "call_1"),))
RESULT = Message("tool", "Sunny", answers="call_1")
ROME = '{"at": "Rome"}'
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "Rome"}'}}
ANSWER = Message("assistant", "It is sunny.", "Let me see.", (ToolCall("look", '{"at": "Rome"}', "call_2"),))


def again(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "id": "call_2"}


CHAT_TURNS: list[Json] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "Weather?"}, {"type": "image_url", "image_url": {}}],
    },
    {"role": "assistant", "content": "One moment.", "reasoning_content": "Hm.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"},
]

#: Dialect -> a request, and an answer to it.
TALKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "openai-chat": (
        {"messages": CHAT_TURNS},
        {
            "choices": [
                {
                    "message": {
                        "content": "It is sunny.",
                        "reasoning": "Let me see.",
                        "tool_calls": [again(CALL)],
                    }
                }
            ]
        },
    ),
    "mistral": (
        {"messages": CHAT_TURNS},
        {
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "content": [
                            {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]},
                            {"type": "text", "text": "It is sunny."},
                        ],
                        "tool_calls": [again(CALL)],
                    },
                }
            ]
        },
    ),
    "anthropic-messages": (
        {
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Weather?"}, {"type": "image", "source": {}}],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                        {"type": "text", "text": "One moment."},
                        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "Rome"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "Sunny"}],
                },
            ],
        },
        {
            "content": [
                {"type": "thinking", "thinking": "Let me see."},
                {"type": "text", "text": "It is sunny."},
                {"type": "tool_use", "id": "call_2", "name": "look", "input": {"at": "Rome"}},
            ]
        },
    ),
    "gemini": (
        {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Weather?"}, {"inlineData": {"mimeType": "image"}}]},
                {
                    "role": "assistant",
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"text": "One moment."},
                        {"functionCall": {"id": "call_1", "name": "look", "args": {"at": "Rome"}}},
                    ],
                },
                {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "response": "Sunny"}}]},
            ],
        },
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"text": "Let me see.", "thought": True},
                            {"text": "It is sunny."},
                            {"functionCall": {"id": "call_2", "name": "look", "args": {"at": "Rome"}}},
                        ]
                    }
                }
            ]
        },
    ),
    "cohere": (
        {
            "messages": [
                *CHAT_TURNS[:2],
                {"role": "assistant", "content": "One moment.", "tool_plan": "Hm.", "tool_calls": [CALL]},
                CHAT_TURNS[3],
            ]
        },
        {
            "message": {
                "content": [
                    {"type": "thinking", "thinking": "Let me see."},
                    {"type": "text", "text": "It is sunny."},
                ],
                "tool_calls": [again(CALL)],
            }
        },
    ),
    "ollama": (
        {
            "messages": [
                CHAT_TURNS[0],
                {"role": "user", "content": "Weather?", "images": ["aGk="]},
                {"role": "assistant", "content": "One moment.", "thinking": "Hm.", "tool_calls": [CALL]},
                CHAT_TURNS[3],
            ]
        },
        {"message": {"content": "It is sunny.", "thinking": "Let me see.", "tool_calls": [again(CALL)]}},
    ),
    "bedrock": (
        {
            "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
            "messages": [
                {"role": "user", "content": [{"text": "Weather?"}, {"image": {"format": "png"}}]},
                {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
                        {"text": "One moment."},
                        {"toolUse": {"toolUseId": "call_1", "name": "look", "input": {"at": "Rome"}}},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": "call_1", "content": [{"text": "Sunny"}]}}],
                },
            ],
        },
        {
            "output": {
                "message": {
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "Let me see."}}},
                        {"text": "It is sunny."},
                        {"toolUse": {"toolUseId": "call_2", "name": "look", "input": {"at": "Rome"}}},
                    ]
                }
            }
        },
    ),
}


@pytest.mark.parametrize("dialect", TALKS)
def test_a_talk_is_read_alike_in_every_format(dialect: str) -> None:
    """Prompt, question with a picture, call, result and answer are the same, however they are written."""
    body, answer = TALKS[dialect]

    assert [*ASKED, CALLED, RESULT] == read_messages(dialect, body)
    assert [ANSWER] == read_answers(dialect, [answer])


def test_items_are_turns_of_their_own() -> None:
    """OpenAI's Responses say in items what others say in one message."""
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at": "Rome"}'}
    body: Json = {
        "instructions": "Be brief.",
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "Weather?"}, {"type": "input_image"}],
            },
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
            call,
            {"type": "function_call_output", "call_id": "call_1", "output": "Sunny"},
        ],
    }
    output = [
        {"type": "reasoning", "summary": [{"text": "Let me see."}]},
        {"type": "message", "content": [{"type": "output_text", "text": "It is sunny."}]},
        {**call, "call_id": "call_2"},
    ]

    assert [
        *ASKED,
        Message("assistant", "", "Hm."),
        Message("assistant", "", tool_calls=CALLED.tool_calls),
        RESULT,
    ] == read_messages("openai-responses", body)
    assert [ANSWER] == read_answers("openai-responses", [{"output": output}])
    assert [Message("user", "Hi")] == read_messages("openai-responses", {"input": "Hi"})


@pytest.mark.parametrize(
    ("dialect", "body", "asked"),
    [
        ("cohere-v1", {"preamble": "Be brief.", "message": "Hi"}, ["system: Be brief.", "user: Hi"]),
        (
            "cohere-v1",
            {"chat_history": [{"role": "CHATBOT", "message": "Yes?"}], "message": "Hi"},
            ["chatbot: Yes?", "user: Hi"],
        ),
        ("ollama", {"system": "Be brief.", "prompt": "Hi"}, ["system: Be brief.", "user: Hi"]),
        ("ollama", {"prompt": "Hi", "images": ["a"]}, ["user: Hi\n[image]"]),
        ("mistral", {"prompt": "def f(", "suffix": "return 1"}, ["user: def f(\nreturn 1"]),
        ("mistral-conversations", {"instructions": "Hm", "inputs": "Hi"}, ["system: Hm", "user: Hi"]),
        ("gemini-interactions", {"system_instruction": "Hm", "input": "Hi"}, ["system: Hm", "user: Hi"]),
        ("huggingface", {"inputs": "Hi", "parameters": {}}, ["user: Hi"]),
        ("openai-completions", {"prompt": ["Hi", "Ho"]}, ["user: Hi", "user: Ho"]),
        ("openai-completions", {"prompt": "Hi", "suffix": "End"}, ["user: Hi\nEnd"]),
        ("openai-completions", {"prompt": [1, 2]}, []),
        ("anthropic-completions", {"prompt": "Human: Hi"}, ["user: Human: Hi"]),
        ("bedrock", {"messages": [{"role": "user", "content": [{"json": {"a": 1}}]}]}, ['user: {"a": 1}']),
        ("generic", {"messages": [{"role": "user", "content": "Hi"}]}, []),
    ],
)  # fmt: skip
def test_short_ways_to_ask_are_read_too(dialect: str, body: Json, asked: list[str]) -> None:
    """A text where others have messages is a turn of the user."""
    assert asked == [f"{message.role}: {message.text}" for message in read_messages(dialect, body)]


@pytest.mark.parametrize(
    ("dialect", "name", "items"),
    [
        (
            "gemini-interactions",
            "input",
            [
                {"type": "function_call", "id": "call_1", "name": "look", "arguments": {"at": "Rome"}},
                {"type": "function_result", "call_id": "call_1", "result": "Sunny"},
                {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
            ],
        ),
        (
            "mistral-conversations",
            "inputs",
            [
                {"type": "function.call", "tool_call_id": "call_1", "name": "look", "arguments": ROME},
                {"type": "function.result", "tool_call_id": "call_1", "result": "Sunny"},
                {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
            ],
        ),
    ],
)  # fmt: skip
def test_calls_and_results_stand_among_the_turns(dialect: str, name: str, items: list[Json]) -> None:
    """Where they are entries of their own, they are turns of their own."""
    model = "model" if dialect == "gemini-interactions" else "assistant"

    assert [
        Message(model, "", tool_calls=CALLED.tool_calls),
        RESULT,
        Message("user", "And now?"),
    ] == read_messages(dialect, {name: items})


def test_what_came_of_an_answer_without_an_end_is_read() -> None:
    """OpenAI's Responses say all of it once more in the end; where that is missing, the deltas count."""
    call = {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": ""}
    events: list[Json] = [
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "Let me see."},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "It is "},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "sunny."},
        {"type": "response.output_item.added", "output_index": 2, "item": call},
        {"type": "response.output_item.added", "output_index": 3, "item": {"type": "message"}},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"at": "Rome"}'},
        {"type": "response.unknown"},
    ]

    assert [ANSWER] == read_answers("openai-responses", events)


@pytest.mark.parametrize("is_named", [True, False], ids=["nova", "converse"])
def test_binary_messages_are_read_by_their_payloads(is_named: bool) -> None:
    """Nova says inside of each what it is, and Converse in a header."""
    use = {"toolUseId": "call_2", "name": "look"}
    payloads: list[tuple[str, Json]] = [
        ("messageStart", {"role": "assistant"}),
        (
            "contentBlockDelta",
            {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Let me see."}}},
        ),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "It is "}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "sunny."}}),
        ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": use}}),
        ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"at": '}}}),
        ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '"Rome"}'}}}),
        ("messageStop", {"stopReason": "tool_use"}),
    ]
    events: list[Json] = [{name: payload} if is_named else payload for name, payload in payloads]

    assert [ANSWER] == read_answers("bedrock", events)


def test_tokens_are_a_text() -> None:
    """Without the one that ends it; a whole answer may be a list."""
    events: list[Json] = [
        {"index": 1, "token": {"text": "It is ", "special": False}, "generated_text": None},
        {"index": 2, "token": {"text": "sunny.", "special": False}, "generated_text": None},
        {"index": 3, "token": {"text": "</s>", "special": True}, "generated_text": "It is sunny."},
    ]
    whole: list[Json] = [{"generated_text": "It is sunny."}]

    said = [Message("assistant", "It is sunny.")]
    assert [said] * 3 == [read_answers("huggingface", each) for each in (events, whole, [whole])]


def test_each_text_of_a_list_is_an_answer() -> None:
    """A model that was asked for several gives them in one list; what is no text is no answer of it."""
    listed: list[Json] = [[{"generated_text": "A"}, None, {"generated_text": "B"}]]

    assert ["A", "B"] == [message.text for message in read_answers("huggingface", listed)]
    assert [] == read_answers("huggingface", [[]])


def test_completions_are_texts() -> None:
    """By the index of their choice, where it is told."""
    events: list[Json] = [
        {"choices": [{"index": 0, "text": "It is "}]},
        {"choices": [{"index": 1, "text": "Rain."}, {"index": 0, "text": "sunny."}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    ]
    whole: list[Json] = [{"choices": [{"text": "It is sunny."}, {"text": "Rain."}]}]

    said = [Message("assistant", "It is sunny."), Message("assistant", "Rain.")]
    assert [said] * 2 == [read_answers("openai-completions", each) for each in (events, whole)]


def test_a_completion_goes_on_with_each_event() -> None:
    """A ping says nothing."""
    events: list[Json] = [{"completion": "It is "}, {"type": "ping"}, {"completion": "sunny."}]

    assert [Message("assistant", "It is sunny.")] == read_answers("anthropic-completions", events)


def test_every_choice_is_an_answer() -> None:
    """Choices that come by turns in a stream are put together by their index."""
    events: list[Json] = [
        {"choices": [{"index": index, "delta": {"content": text}}]}
        for index, text in [(1, "B"), (0, "A"), (1, "b")]
    ]

    assert ["A", "Bb"] == [message.text for message in read_answers("openai-chat", events)]


def test_calls_in_one_place_are_told_apart_by_their_ids() -> None:
    """Some servers give all calls one index; pieces of a call have no id of their own."""
    calls = [again(CALL), {"index": 0, **CALL}, {"index": 0, "function": {"arguments": "!"}}]
    events: list[Json] = [{"choices": [{"delta": {"tool_calls": [{**call, "index": 0}]}}]} for call in calls]
    (answer,) = read_answers("openai-chat", events)

    assert (
        ToolCall("look", '{"at": "Rome"}', "call_2"),
        ToolCall("look", '{"at": "Rome"}!', "call_1"),
    ) == answer.tool_calls


@pytest.mark.parametrize("dialect", READERS)
def test_nothing_that_is_sent_breaks_a_reader(dialect: str) -> None:
    """Whatever stands at a place, a reader says less, and raises nothing."""
    names = (
        "messages contents input inputs system systemInstruction prompt message content parts choices delta "
        "output candidates steps outputs type index tool_calls function item response arguments "
        "images chat_history token generated_text toolUse toolResult reasoningContent contentBlockDelta delta"
    ).split()
    odd: list[Json] = [None, 7, "text", [], {}, [None], [7], ["text"], [[]], [{}], {"text": 7}, True]
    for value in odd:
        inner: Json = dict.fromkeys(names, value)
        for body in (inner, dict.fromkeys(names, inner), {name: [inner] for name in names}):
            read_messages(dialect, body)
            read_answers(dialect, [body, value])


def test_every_dialect_has_a_reader() -> None:
    """A new wire format is read, or is the generic one."""
    assert {dialect.name for dialect in DIALECTS} - {"generic"} == set(READERS)


def cases(page: Path) -> list[dict[str, Any]]:
    """Return the exchanges of a file that were answered by a stream, which is not compressed."""
    listed = [json.loads(line) for line in page.read_text(encoding="utf-8").split("\n") if line]
    return [case for case in listed if case["request"]["body"] and is_plain_stream(case["response"])]


def is_plain_stream(response: dict[str, Any]) -> bool:
    headers = {name.lower(): value for name, value in response["headers"].items()}
    kind = headers.get("content-type", "")
    is_stream = kind.startswith(("text/event-stream", "application/x-ndjson", "application/stream+json"))
    return response["status"] == 200 and is_stream and "content-encoding" not in headers


def events_of(text: str) -> list[Json]:
    """Return the JSON of the events of a stream, read as simply as can be."""
    found: list[Json] = []
    for line in text.replace("\r", "\n").split("\n"):
        if line.startswith(("data:", "{")):
            try:
                found.append(json.loads(line.removeprefix("data:")))
            except ValueError:
                pass
    return found


#: But for binary streams, which cannot be read as simply.
PAGES = [page for page in sorted(CASES.glob("*.jsonl")) if not page.stem.endswith("bedrock")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_stored_stream_says_what_was_received(page: Path, tmp_path: Path) -> None:
    """An assembled stream is read as the events were that came; each case is recorded and opened."""
    compared = 0
    for number, case in enumerate(cases(page)):
        sent = case["response"]["body_text"]
        answer = httpx.Response(200, headers=case["response"]["headers"], content=sent.encode())
        path = tmp_path / f"{number}.jsonl"
        transport = CassetteTransport(
            path,
            mode="record",
            next_transport=httpx.MockTransport(lambda request, answer=answer: answer),
            require_system=False,
            fsync=False,
        )
        with httpx.Client(transport=transport) as client:
            client.post(case["request"]["url"], json=case["request"]["body"])
        for exchange in httpx_cassette.open(path) if path.exists() else ():
            if exchange.response.get("framing") in ("sse", "ndjson"):
                compared += 1
                assert read_answers(exchange.dialect, events_of(sent)) == exchange.answers, case["id"]

    assert compared >= 4
