"""The options of a transport are checked when it is built."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import Call, Cassette, KeyPolicy, Mode, OptionError, Redaction
from httpx_cassette._settings import OPTIONS, Settings, read_settings
from httpx_cassette._transport import Options


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, outside any project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(**options: Any) -> Settings:
    return read_settings("a.jsonl", options)


def visit(url: str) -> Call:
    return Call("GET", url, (), b"")


def refusal(**options: Any) -> str:
    with pytest.raises(OptionError) as caught:
        settings(**options)
    return str(caught.value)


def test_defaults() -> None:
    """Nothing said: replay, everything checked, nothing passed, one sample."""
    found = settings()

    assert ["a.jsonl"] == [cassette.path for cassette in found.shelf.cassettes]
    assert (Mode.REPLAY, True, False, KeyPolicy(), Redaction()) == (
        found.mode,
        found.require_system,
        bool(found.prompt_files),
        found.policy,
        found.redaction,
    )
    assert (1, None, 16, None, False, "exit", None) == (
        found.samples,
        found.max_calls,
        found.chunk_size,
        found.wire_chunk_size,
        found.noise,
        found.on_miss,
        found.passthrough,
    )
    assert [200, 204, 301, 399] == [
        status for status in (100, 200, 204, 301, 399, 400, 500) if found.is_recordable(status)
    ]


def test_every_option_is_documented_in_the_signature() -> None:
    """The options, their types for a checker, and the fields of the settings are the same."""
    assert {*OPTIONS, "next_transport"} == {*Options.__annotations__}
    renamed = {
        "key_policy": "policy",
        "redact": "redaction",
        "record_statuses": "is_recordable",
        "fsync": "shelf",
    }
    assert {renamed.get(name, name) for name in OPTIONS} | {
        "allowed",
        "fresh_since",
        "is_mode_given",
        "max_calls_of_all",
    } == {field.name for field in dataclasses.fields(Settings)}


def test_the_policy_on_a_line_is_what_differs_from_the_default() -> None:
    """Prompt files by their digests, the redaction where it is another one; nothing if nothing was said."""
    found = settings(key_policy={"host": False, "extra": {"v": "7"}}, redact=False)
    policy = {"host": False, "extra": {"v": "7"}, "redact": Redaction(strong=False).as_json()}

    assert {} == settings().policy_on_line() == settings().policy_on_line({})
    assert policy == found.policy_on_line()
    assert {**policy, "prompt_files": {"a.md": "0"}} == found.policy_on_line({"a.md": "0"})
    assert policy == found.policy_on_line()


# -- cassettes -----------------------------------------------------------------------------------------


def test_several_cassettes_are_looked_up_and_the_last_is_written() -> None:
    """Paths and cassettes, in their order."""
    shared = Cassette("c.jsonl")
    found = read_settings(["a.jsonl", Path("b.jsonl"), shared], {})

    assert ["a.jsonl", "b.jsonl", "c.jsonl"] == [cassette.path for cassette in found.shelf.cassettes]
    assert shared is found.shelf.written


@pytest.mark.parametrize(
    ("cassette", "message"),
    [
        ([], "an empty list names no cassette; give at least one path"),
        (5, "cassette=5 is not understood; it takes a path, a Cassette, or a list of them"),
        (None, "cassette=None is not understood; it takes a path, a Cassette, or a list of them"),
    ],
)
def test_no_cassette_is_refused(cassette: Any, message: str) -> None:
    """The error says what it takes."""
    with pytest.raises(OptionError) as caught:
        read_settings(cassette, {})

    assert message == str(caught.value)


@pytest.mark.parametrize("fsync", [True, False])
def test_fsync_is_the_cassettes(fsync: bool) -> None:
    """A cassette that was handed in keeps what it was made with."""
    shared = Cassette("b.jsonl")
    before = shared.fsync

    assert fsync is settings(fsync=fsync).shelf.written.fsync
    assert before is read_settings(shared, {"fsync": fsync}).shelf.written.fsync


@pytest.mark.parametrize(("mode", "is_given"), [(None, False), ("replay", True), ("record", False)])
def test_a_mode_in_the_code_counts_where_it_keeps_from_recording(
    mode: str | None, is_given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the ceiling is what a miss is due to, the report does not blame the code."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "replay")
    found = settings(mode=mode)

    assert (Mode.REPLAY, is_given) == (found.mode, found.is_mode_given)


def test_recording_asks_for_a_file_that_can_be_written(folder: Path) -> None:
    """Before anything is paid."""
    assert Mode.RECORD is settings(mode="record").mode
    assert Mode.RERECORD is settings(mode="rerecord").mode
    (folder / "a.jsonl").mkdir()

    with pytest.raises(Exception, match=r"a\.jsonl"):
        settings(mode="record")


# -- plain options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"sample": 1}, "CassetteTransport has no option 'sample' (did you mean 'samples'?)"),
        ({"keypolicy": 1}, "CassetteTransport has no option 'keypolicy' (did you mean 'key_policy'?)"),
        (
            {"require_sytem": 1},
            "CassetteTransport has no option 'require_sytem' (did you mean 'require_system'?)",
        ),
        ({"xyzzy": 1}, f"CassetteTransport has no option 'xyzzy'; there are {', '.join(sorted(OPTIONS))}"),
        ({"mode": "play"}, "mode='play' is not a mode (did you mean 'replay'?)"),
        (
            {"require_system": "everywhere"},
            "require_system='everywhere' is not understood; "
            "it takes True, False, 'anywhere' or a callable on the call",
        ),
        ({"key_policy": 5}, "key_policy=5 is not understood; give it a KeyPolicy"),
        ({"key_policy": {"mask": []}}, "KeyPolicy has no option 'mask' (did you mean 'masks'?)"),
        ({"key_policy": {"host": 1}}, "KeyPolicy(host=1) takes True or False"),
        ({"redact": {"pattern": {}}}, "redact has no argument 'pattern' (did you mean 'patterns'?)"),
        ({"samples": 0}, "samples=0 is not understood; it takes a whole number from 1"),
        ({"samples": True}, "samples=True is not understood; it takes a whole number from 1"),
        ({"samples": "2"}, "samples='2' is not understood; it takes a whole number from 1"),
        ({"chunk_size": -1}, "chunk_size=-1 is not understood; it takes a whole number from 1"),
        ({"wire_chunk_size": 0}, "wire_chunk_size=0 is not understood; it takes a whole number from 1"),
        ({"max_calls": -1}, "max_calls=-1 is not understood; it takes a whole number, 0 for none at all"),
        ({"max_calls": 1.5}, "max_calls=1.5 is not understood; it takes a whole number, 0 for none at all"),
        ({"noise": "no"}, "noise='no' is not understood; it takes True or False"),
        ({"fsync": 0}, "fsync=0 is not understood; it takes True or False"),
        (
            {"on_miss": "raise"},
            "on_miss='raise' is not understood; it takes a callable on the CassetteMiss, or None",
        ),
        (
            {"prompt_files": 5},
            "prompt_files=5 is not understood; it takes paths, or a mapping of names to paths",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_mistake_is_met_where_it_is_made(option: dict[str, Any], message: str) -> None:
    """An unknown name offers the nearest, a wrong value says what it takes."""
    assert message == refusal(**option)


def test_options_are_taken_as_they_are_meant() -> None:
    """Each in every form that it takes."""
    judge = bool
    policy = KeyPolicy(host=False)
    assert [True, False, "anywhere", judge] == [
        settings(require_system=each).require_system for each in (True, False, "anywhere", judge)
    ]
    assert policy is settings(key_policy=policy).policy
    assert policy == settings(key_policy={"host": False}).policy
    assert KeyPolicy() == settings(key_policy=None).policy
    assert [None, "exit", judge] == [settings(on_miss=each).on_miss for each in (None, "exit", judge)]
    assert [None, 7] == [settings(wire_chunk_size=each).wire_chunk_size for each in (None, 7)]
    assert (3, 64, True) == (
        settings(samples=3).samples,
        settings(chunk_size=64).chunk_size,
        settings(noise=True).noise,
    )


@pytest.mark.parametrize(
    ("variable", "option", "limits"),
    [
        (None, None, (None, None)),
        (None, 0, (0, None)),
        ("5", None, (None, 5)),
        (" 5 ", 2, (2, 5)),
        ("0", 2, (2, 0)),
        ("", None, (None, None)),
    ],
)
def test_the_limit_of_calls_can_come_from_outside(
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    option: int | None,
    limits: tuple[int | None, int | None],
) -> None:
    """The argument limits the transport, the variable all of them."""
    if variable is not None:
        monkeypatch.setenv("HTTPX_CASSETTE_MAX_CALLS", variable)
    found = settings(max_calls=option)

    assert limits == (found.max_calls, found.max_calls_of_all)


def test_a_limit_of_calls_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable."""
    monkeypatch.setenv("HTTPX_CASSETTE_MAX_CALLS", "-1")

    assert "HTTPX_CASSETTE_MAX_CALLS='-1' is not understood; it takes a whole number" == refusal()


@pytest.mark.parametrize(
    ("statuses", "kept"),
    [
        ([200, "4xx"], [200, 400, 404]),
        (404, [404]),
        ("5xx", [500]),
        ((), []),
        ({"2xx", 500}, [200, 204, 500]),
    ],
)
def test_statuses_are_numbers_and_classes(statuses: Any, kept: list[int]) -> None:
    """One or several of them."""
    is_recordable = settings(record_statuses=statuses).is_recordable

    assert kept == [status for status in (200, 204, 301, 400, 404, 500) if is_recordable(status)]


@pytest.mark.parametrize("statuses", [[99], [600], ["6xx"], ["404"], "all", [True], [None], 5.5])
def test_statuses_that_are_none_are_refused(statuses: Any) -> None:
    """The error names the first that is not understood."""
    item = statuses[0] if isinstance(statuses, list) else statuses

    assert (
        f"record_statuses cannot hold {item!r}; it takes status codes and classes such as '4xx'"
    ) == refusal(record_statuses=statuses)


# -- calls by host, URL or predicate -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matcher", "matched", "others"),
    [
        pytest.param(
            "api.example.com",
            ["https://api.example.com/x", "http://API.example.com:8080", "https://u:p@api.example.com?q"],
            [
                "https://example.com/",
                "https://xapi.example.com/",
                "https://api.example.com.evil/",
                "https://evil/?api.example.com",
                "https://api.example.com@evil/",
                "https://evil/https://api.example.com/",
            ],
            id="host",
        ),
        pytest.param(
            "localhost:9200",
            ["http://localhost:9200/x", "http://localhost:9200"],
            ["http://localhost:92000/", "http://localhost/", "http://localhost:9201/"],
            id="host-and-port",
        ),
        pytest.param(
            "*.example.com",
            ["https://a.example.com/", "https://a.b.example.com/", "https://example.com/"],
            ["https://badexample.com/", "https://a.example.com.evil/", "https://x@evil/.example.com/"],
            id="wildcard",
        ),
        pytest.param(
            "https://api.example.com/v1",
            [
                "https://api.example.com/v1",
                "https://api.example.com/v1/x",
                "https://API.example.com/v1?q",
                "https://u:p@api.example.com/v1#f",
            ],
            [
                "https://api.example.com/v10",
                "https://api.example.com/V1",
                "http://api.example.com/v1",
                "https://api.example.com:8080/v1",
                "https://api.example.com@evil/v1",
            ],
            id="url",
        ),
        pytest.param(
            "https://api.example.com",
            ["https://api.example.com/", "https://api.example.com?q"],
            [
                "https://api.example.com:8080/",
                "https://api.example.com.evil/",
                "https://api.example.com:443@evil/",
            ],
            id="url-without-a-path",
        ),
        pytest.param(
            "https://h/v1/",
            ["https://h/v1/", "https://h/v1/x"],
            ["https://h/v1", "https://h/v2/"],
            id="url-of-a-folder",
        ),
        pytest.param("https://u@h/", ["https://u@h/x"], ["https://h/x"], id="url-with-a-user"),
        pytest.param("https://h?a=", ["https://h?a=1"], ["https://h/?a=1"], id="url-with-a-query"),
        pytest.param(
            ["a.example", "https://b.example/x"],
            ["https://a.example/", "https://b.example/x"],
            ["https://b.example/"],
            id="several",
        ),
        pytest.param(lambda call: call.method == "GET", ["https://h/"], [], id="predicate"),
        pytest.param(
            [lambda call: False, "a.example"], ["https://a.example/"], ["https://b.example/"], id="both"
        ),
    ],
)
def test_calls_are_named_by_host_url_or_predicate(
    matcher: Any, matched: list[str], others: list[str]
) -> None:
    """A name ends where a part of the URL ends, and nothing before the host counts."""
    passes = settings(passthrough=matcher).passthrough
    assert passes is not None

    assert matched == [url for url in [*matched, *others] if passes(visit(url))]


def test_probes_are_ignored_unless_that_is_switched_off() -> None:
    """Three known ones, and what is added to them."""
    probes = [
        "https://huggingface.co/api/agent-harnesses",
        "https://api.cerebras.ai/v1/tcp_warming",
        "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
    ]
    for option, extra in (
        ((), []),
        ("a.example", ["https://a.example/"]),
        (lambda call: "b." in call.url, ["https://b.example/"]),
    ):
        ignores = settings(ignore=option).ignore
        assert ignores is not None
        assert [*probes, *extra] == [
            url for url in [*probes, *extra, "https://huggingface.co/api"] if ignores(visit(url))
        ]

    assert settings(ignore=None).ignore is None
    assert settings(ignore=False).ignore is None


@pytest.mark.parametrize("option", ["passthrough", "ignore"])
@pytest.mark.parametrize("item", ["", "  ", 5, None, b"x"])
def test_what_names_no_call_is_refused(option: str, item: Any) -> None:
    """The error names what is not understood."""
    assert (
        f"{option} cannot hold {item!r}; it takes hosts, URL prefixes and callables on the call"
    ) == refusal(**{option: [item]})


@pytest.mark.parametrize(
    "item", ["api.example.com/v1", "user@api.example.com", "api.example.com ", "a b", "/v1"]
)
def test_what_could_never_be_a_host_is_refused(item: str) -> None:
    """A pattern that matches no call would let it through, or keep it, without a word."""
    message = refusal(passthrough=[item])

    assert message.startswith(f"passthrough={item!r} is no host, because of ")
    assert message.endswith("or the host alone")


def test_a_single_matcher_that_is_none_is_refused() -> None:
    """A number is no list of hosts."""
    assert ("passthrough cannot hold 5; it takes hosts, URL prefixes and callables on the call") == refusal(
        passthrough=5
    )
