"""A survey never says that a rule is not needed where it is."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette import KeyPolicy
from httpx_cassette._call import Json
from httpx_cassette._canonical import canonical_bytes
from httpx_cassette._fingerprint import Draft, key_document
from httpx_cassette._survey import BELOW, EMPTY, EVERYTHING, REFERENCE, SINGLE, TEXT, survey_for
from httpx_cassette.dialects import DIALECTS, Dialect

from .keying import slow_document

SURVEY = survey_for(
    [
        (TEXT, ["text", "list[*].text", "rows[*][*]"]),
        (SINGLE, ["list[*].parts", "rows[*]"]),
        (EMPTY, ["list[*].gone", "list[*].text", "rows[0]"]),
        (BELOW, ["list[*].parts[*].options", "options"]),
        (REFERENCE, ["list[*].id", "map[*]"]),
    ]
)


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param({}, 0, id="nothing"),
        pytest.param({"text": "a", "list": [{"text": "b\nc"}]}, 0, id="clean"),
        pytest.param({"text": "a "}, TEXT, id="text"),
        pytest.param({"text": ""}, 0, id="empty-text"),
        pytest.param({"text": None}, 0, id="null"),
        pytest.param({"other": "a "}, 0, id="elsewhere"),
        pytest.param({"list": [{"text": "a"}, {"text": "a \nb"}]}, TEXT, id="text-in-a-list"),
        pytest.param({"list": [{"text": None}]}, EMPTY, id="null-in-a-list"),
        pytest.param({"list": [{"gone": []}]}, EMPTY, id="empty-list"),
        pytest.param({"list": [{"gone": {}}]}, EMPTY, id="empty-object"),
        pytest.param({"list": [{"gone": [0]}, 5, "x", None, []]}, 0, id="other-elements"),
        pytest.param({"list": [{"parts": [1]}]}, SINGLE, id="one-element"),
        pytest.param({"list": [{"parts": [1, 2]}]}, 0, id="two-elements"),
        pytest.param({"options": {"a": 1}}, BELOW, id="object"),
        pytest.param({"list": [{"parts": [{"options": {"a": 1}}, {}]}]}, BELOW, id="object-deeper"),
        pytest.param({"list": [{"id": "x"}]}, REFERENCE, id="reference"),
        pytest.param({"list": [{"id": ["x", "y"]}]}, 0, id="no-reference"),
        pytest.param({"rows": [["a", "b "], ["c", "d"]]}, TEXT, id="list-of-lists"),
        pytest.param({"rows": [["a"]]}, SINGLE, id="list-of-lists-single"),
        pytest.param({"rows": [[1, 2], []]}, EMPTY, id="an-index-as-if-it-were-each"),
        pytest.param({"map": ["a", 1, None]}, REFERENCE, id="each-of-a-list"),
        pytest.param({"map": {"a": 1}}, REFERENCE, id="each-of-an-object"),
        pytest.param({"list": {"a": 1}}, EVERYTHING, id="an-object-for-a-list"),
        pytest.param({"list": {}, "rows": "x"}, 0, id="no-list"),
        pytest.param([{"text": "a "}], 0, id="not-an-object"),
        pytest.param("a ", 0, id="a-text"),
        pytest.param(
            {"text": "a ", "options": {"a": 1}, "list": [{"id": "x", "gone": None, "parts": [0]}]},
            EVERYTHING,
            id="everything",
        ),
    ],
)
def test_a_survey_finds_what_is_there(document: Json, found: int) -> None:
    """What occurs at its paths, as a sum."""
    assert found == SURVEY(document)


def test_a_survey_does_not_look_everywhere() -> None:
    """What a path with two stars names is always taken to be there."""
    assert TEXT == survey_for([(TEXT, ["**.text"]), (EMPTY, ["a"])])({"a": 1})


# -- against the rules ---------------------------------------------------------------------------------

_TEXTS = st.sampled_from(
    ["", "a", "a ", "a \nb", "a\n", " ", "call_1", "call_x", "2026-03-02", "<date>", "auto"]
)
_ODD = st.sampled_from([None, [], {}, 0, 1, True, False, 1.0])
_PARTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image_url"])},
        optional={
            "text": _TEXTS | _ODD,
            "refusal": _TEXTS,
            "image_url": st.fixed_dictionaries({}, optional={"detail": _TEXTS, "url": _TEXTS}),
        },
    )
    | _ODD,
    max_size=2,
)
_CALLS = st.lists(st.fixed_dictionaries({"id": _TEXTS | _ODD}, optional={"function": _ODD}), max_size=2)
_MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={
        "content": _TEXTS | _PARTS | _ODD,
        "tool_calls": _CALLS | _ODD,
        "tool_call_id": _TEXTS | _ODD,
        "refusal": _TEXTS | _ODD,
        "name": _TEXTS | _ODD,
        "reasoning_details": _PARTS | _ODD,
        "$odd": _TEXTS,
    },
)
_FUNCTIONS = st.fixed_dictionaries({}, optional={"strict": _ODD, "name": _TEXTS})
_BODIES = st.fixed_dictionaries(
    {
        "messages": st.lists(_MESSAGES | _ODD, max_size=3)
        | _ODD
        | st.dictionaries(_TEXTS, _MESSAGES, max_size=2)
    },
    optional={
        "model": _TEXTS,
        "tools": st.lists(st.fixed_dictionaries({}, optional={"function": _FUNCTIONS}) | _ODD, max_size=2)
        | _ODD,
        "functions": st.lists(_FUNCTIONS, max_size=2) | _ODD,
        "stream_options": st.fixed_dictionaries({}, optional={"include_usage": _ODD, "x": _ODD}) | _ODD,
        "response_format": st.fixed_dictionaries({}, optional={"type": _TEXTS, "json_schema": _FUNCTIONS})
        | _ODD,
        "temperature": _ODD | st.just(0.5),
        "parallel_tool_calls": _ODD,
        "tool_choice": _TEXTS | _ODD,
        "metadata": _ODD,
        "stop": _ODD | _TEXTS,
        "content": _TEXTS | _PARTS,
    },
)
_GEMINI_PARTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "text": _TEXTS | _ODD,
            "thought": _ODD,
            "functionCall": st.fixed_dictionaries({}, optional={"id": _TEXTS | _ODD, "args": _ODD}),
            "function_response": st.fixed_dictionaries({}, optional={"id": _TEXTS | _ODD}),
        },
    )
    | _ODD,
    max_size=2,
)
_CONTENTS = st.fixed_dictionaries(
    {}, optional={"role": st.sampled_from(["user", "model"]), "parts": _GEMINI_PARTS | _ODD}
)
_CONFIGS = st.fixed_dictionaries(
    {},
    optional={"candidateCount": _ODD, "response_mime_type": _TEXTS | st.just("text/plain"), "topP": _ODD},
)
_GEMINI_BODIES = st.fixed_dictionaries(
    {"contents": st.lists(_CONTENTS | _ODD, max_size=3) | _CONTENTS | _ODD},
    optional={
        "systemInstruction": _CONTENTS | _ODD,
        "generationConfig": _CONFIGS | _ODD,
        "generation_config": _CONFIGS | _ODD,
        "toolConfig": st.just({"functionCallingConfig": {"mode": "AUTO"}}) | _ODD,
        "tools": _ODD,
    },
)
_POLICIES = st.sampled_from(
    [
        KeyPolicy(),
        KeyPolicy(masks=["date"]),
        KeyPolicy(ignore=["messages[0]", "messages[*].content[1]", "stream_options.x", "tools[-1]"]),
        KeyPolicy(defaults=False),
        KeyPolicy(defaults={"temperature": 0.5}),
        KeyPolicy(strip=False, host=False),
    ]
)


_BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "tool_use", "tool_result", "compaction", "document"])},
        optional={
            "text": _TEXTS | _ODD,
            "id": _TEXTS | _ODD,
            "tool_use_id": _TEXTS,
            "content": _TEXTS | _PARTS | _ODD,
            "citations": _ODD | st.lists(st.fixed_dictionaries({"title": _ODD}), max_size=1),
            "caller": _ODD | st.fixed_dictionaries({"tool_id": _TEXTS}),
            "cache_control": _ODD | st.just({"type": "ephemeral", "ttl": "5m"}),
            "tool_changes": _ODD,
            "input": _ODD,
        },
    )
    | _ODD,
    max_size=2,
)
_MESSAGES_BODIES = st.fixed_dictionaries(
    {
        "messages": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["user", "assistant"]), "content": _TEXTS | _BLOCKS | _ODD}
            ),
            max_size=3,
        )
    },
    optional={
        "system": _TEXTS | _BLOCKS | _ODD,
        "tools": _ODD
        | st.lists(st.fixed_dictionaries({"name": _TEXTS}, optional={"type": _ODD}), max_size=2),
        "tool_choice": _ODD | st.just({"type": "auto", "disable_parallel_tool_use": False}),
        "thinking": _ODD | st.fixed_dictionaries({"block_binding": _ODD}, optional={"display": _ODD}),
        "temperature": _ODD,
        "stream": _ODD,
        "metadata": _ODD | st.fixed_dictionaries({"user_id": _TEXTS | _ODD}),
    },
)


@given(
    _BODIES | _MESSAGES_BODIES | _GEMINI_BODIES,
    _POLICIES,
    st.sampled_from(DIALECTS),
)
def test_the_quick_way_gives_what_every_rule_in_full_gives(
    body: dict[str, Json], policy: KeyPolicy, dialect: Dialect
) -> None:
    """With a survey and without one, the key document is the same, and so is what was folded."""

    def draft(may_have_dollar: bool) -> Draft:
        request = {"method": "POST", "url": "https://h/x", "json": copy.deepcopy(body)}
        return Draft(request, dialect, policy, "h", may_have_dollar)

    quick, slow = draft("$" in str(body)), draft(True)

    assert canonical_bytes(slow_document(slow)) == canonical_bytes(key_document(quick))
    assert slow.folded == quick.folded
