"""Wire formats of the user: registered, asked first, taken back; what is refused, and how it is said."""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import httpx
import pytest

import httpx_cassette
from httpx_cassette import (
    CassetteMiss,
    CassetteTransport,
    CassetteUnusable,
    CassetteWriteError,
    KeyPolicy,
    OptionError,
    SystemPromptMissing,
    _ledger,
)
from httpx_cassette.dialects import (
    DIALECTS,
    GENERIC,
    OPENAI_CHAT,
    SYSTEM_MESSAGE,
    At,
    Dialect,
    Endpoint,
    Ends,
    Folds,
    Noise,
    Paths,
    Pieces,
    StreamTable,
    SystemPrompt,
    by_name,
    is_known,
    recognise,
    register,
    unregister,
)
from httpx_cassette.dialects._registry import _REGISTERED
from tests.colours import lines

URL = "https://gateway.example.com/ask"
STREAM = StreamTable(text=("say",), progress=Ends(marks=("[END]",)))
LINES = Ends(members={"done": True}, finish="why", unfinished=["no"])


def gateway(name: str = "my-gateway", **members: Any) -> Dialect:
    """Return a dialect that can be registered."""
    return Dialect(**{"name": name, "endpoints": (Endpoint("/ask", has={"q": str}),), **members})


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Take back what a test registers, and what it missed."""
    yield
    _REGISTERED.clear()
    _ledger.clear()


# -- which dialect a call is of ------------------------------------------------------------------------


def test_a_registered_dialect_is_recognised() -> None:
    """At its endpoints, where the body has what it must; elsewhere everything is as before."""
    assert GENERIC is recognise("/v1/ask", {"q": "?"})
    mine = register(gateway())

    assert mine is recognise("/v1/ask", {"q": "?"})
    assert GENERIC is recognise("/v1/ask", {"q": 1})
    assert OPENAI_CHAT is recognise("/v1/chat/completions", {"messages": []})
    assert (mine, True) == (by_name("my-gateway"), is_known("my-gateway"))


def test_a_registered_dialect_is_asked_before_those_of_the_package() -> None:
    """It was registered on purpose: a gateway may answer at a known path in its own way."""
    mine = register(
        gateway(endpoints=(Endpoint("/chat/completions", has={"messages": list, "tenant": str}),))
    )

    assert mine is recognise("/v1/chat/completions", {"messages": [], "tenant": "a"})
    assert OPENAI_CHAT is recognise("/v1/chat/completions", {"messages": []})


def test_the_last_of_several_is_asked_first() -> None:
    """Whoever comes later knows of those before."""
    first, second = register(gateway("first")), register(gateway("second"))

    assert second is recognise("/ask", {"q": ""})
    unregister("second")
    assert first is recognise("/ask", {"q": ""})


def test_what_is_taken_back_is_not_known_any_more() -> None:
    """By the dialect, or by its name; what nobody registered cannot be taken back."""
    mine = register(gateway())
    unregister(mine)

    assert GENERIC is recognise("/ask", {"q": ""}) is by_name("my-gateway")
    assert not is_known("my-gateway")
    with pytest.raises(OptionError) as caught:
        unregister("my-gateway")
    assert "no dialect is registered as 'my-gateway'; there are []" == str(caught.value)


def test_a_name_is_taken_once() -> None:
    """By the package, or by another dialect; the message says what to do."""
    register(gateway())
    said = []
    for another in (gateway(turns=("messages",)), gateway("openai-chat"), gateway("generic")):
        with pytest.raises(OptionError) as caught:
            register(another)
        said.append(str(caught.value))

    assert [
        "another dialect is registered as 'my-gateway'; choose another name, or call "
        "unregister('my-gateway') first",
        *(
            f"the dialect {name!r} comes with httpx_cassette; choose another name, such as 'my-{name}': a "
            "registered dialect is asked first, whatever its name"
            for name in ("openai-chat", "generic")
        ),
    ] == said


def test_every_dialect_of_the_package_could_be_registered() -> None:
    """What is refused is refused rightly; generic is spoken everywhere, and so it has no endpoint."""
    for dialect in DIALECTS:
        if dialect is not GENERIC:
            renamed = replace(dialect, name=f"my-{dialect.name}")
            assert renamed is register(renamed) is register(replace(renamed))


MODULE = """
import functools
from httpx_cassette.dialects import *

class Progress:
    awaits_more = is_complete = is_terminated = False
    error = finish = None
    def expect(self, request): pass
    def observe(self, event, value): pass

def asks(word):
    return lambda host: host == word

def walks(last):
    def walk(answer):
        return walk(answer[0]) if isinstance(answer, list) else later if answer else last
    if last == "never":
        later = last
    return walk

def loops(word):
    held = [word]
    held.append(held)
    return lambda body: held

class Hosts:
    @classmethod
    def decide(cls, host, ours="ours.example"):
        return host == ours


MINE = Dialect(
    name="my-gateway",
    endpoints=(Endpoint("/ask", has={"q": str}),),
    text=Paths(["q"]),
    folds=Folds(
        defaults={"n": 1},
        is_own_host=asks("HOST"),
        decides_sampling=Hosts.decide,
        below=((Paths(["a"]), {"b": []}),),
    ),
    stream=StreamTable(text=("say",), progress=Progress),
    finish=walks("end"),
    held=loops("a"),
    system=SystemPrompt("first", functools.partial(divmod, 7, *[2])),
    is_failure=lambda answer, wrong=False: wrong,
)
register(MINE)
"""


@pytest.mark.parametrize(
    ("old", "new", "is_refused"),
    [
        ("", "", False),
        ("HOST", "another", True),
        ("host == word", "host != word", True),
        ("wrong=False", "wrong=True", True),
        ('"b": []', '"b": {}', True),
        ('["q"]', '["r"]', True),
        ('walks("end")', 'walks("stop")', True),
        ('walks("end")', 'walks("never")', True),
        ('walks("end")', 'At("end")', True),
        ('loops("a")', 'loops("b")', True),
        ("ours.example", "theirs.example", True),
        ("*[2]", "*[3]", True),
        ("divmod", "pow", True),
        ('{"n": 1}', '{"n": True}', True),
        ('{"n": 1}', '{"n": [1]}', True),
        ("progress=Progress", "progress=Ends(marks=('x',))", True),
        ('text=("say",)', 'text=("say", "think")', True),
    ],
)
def test_a_module_may_be_loaded_again(old: str, new: str, is_refused: bool, tmp_path: Path) -> None:
    """Written as before, its dialect is the one that is there; otherwise it is another of the same name."""
    file = tmp_path / "formats.py"

    def load(text: str) -> Any:
        module = ModuleType("formats")
        exec(compile(text, file, "exec"), module.__dict__)
        return module

    first = load(MODULE)
    if is_refused:
        with pytest.raises(OptionError, match=r"^another dialect is registered as 'my-gateway'; "):
            load(MODULE.replace(old, new))
    else:
        assert first.MINE is not load(MODULE).MINE
    assert first.MINE is by_name("my-gateway")


def test_threads_register_and_ask_at_once() -> None:
    """Nobody waits, nothing is lost, and nothing old is remembered."""
    names = [f"gateway-{number}" for number in range(40)]
    found: list[bool] = []

    def work(name: str) -> None:
        mine = register(gateway(name, endpoints=(Endpoint(f"/{name}"),)))
        found.append(recognise(f"/{name}", {}) is mine)
        recognise("/ask", {})
        unregister(mine)
        found.append(recognise(f"/{name}", {}) is GENERIC)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [True] * 80 == found
    assert {} == _REGISTERED


def test_the_package_has_the_module() -> None:
    """``httpx_cassette.dialects.register`` needs no import of its own."""
    assert register is httpx_cassette.dialects.register
    assert httpx_cassette.dialects is sys.modules["httpx_cassette.dialects"]


# -- what cannot be used -------------------------------------------------------------------------------


class Half:
    """A progress that lacks most of it."""

    finish = None

    def __repr__(self) -> str:
        return "<half>"


class Changing:
    """Makes a progress, and has no hash."""

    __hash__ = None  # type: ignore[assignment]  # on purpose

    def __call__(self) -> Any:
        return STREAM.progress()


def made(**members: Any) -> Callable[[], Any]:
    return lambda: gateway(**members)


def streaming(**members: Any) -> Callable[[], Any]:
    return lambda: gateway(stream=replace(STREAM, **members))


def folding(**members: Any) -> Callable[[], Any]:
    return lambda: gateway(folds=Folds(**members))


class Refused(NamedTuple):
    """What cannot be used.

    Args:
        make: Makes it.
        said: The member and the value, as the message has them; or all of it.
        takes: What the member takes instead.
    """

    make: Callable[[], Any]
    said: str
    takes: str = ""

    @property
    def message(self) -> str:
        return f"{self.said} is not understood; it takes {self.takes}" if self.takes else self.said


AN_ENDPOINT = "Endpoint('/path', has={'member': type})"
TYPES = "a mapping of members of the body to types, such as {'messages': list}"
TEXTS = "a collection of texts, such as ('messages',)"
TUPLE = "a tuple of texts, such as ('choices[*].delta.content',)"
PAIRS = "pairs of Paths([...]) and a mapping of defaults"
SUMS = "pairs of a path and of the path of stream.text that it sums up"
TABLES = "a tuple of StreamTable(...)"
PROGRESS = "Ends(...), or what makes an object with the members of StreamProgress"
NO_PATH = "the path 'a b' cannot be read at ' b'; write it like 'metadata.run_id' or 'messages[*].name'"
HALF = "awaits_more, error, expect, is_complete, is_terminated, observe"

BY_NAME: Any = {"q": "str"}
ONE_TABLE: Any = Ends(marks=("x",))

REFUSED = {
    "no endpoint": Refused(made(endpoints=()), "endpoints=()", f"a tuple with at least one {AN_ENDPOINT}"),
    "a number": Refused(made(endpoints=7), "endpoints=7", f"a tuple with at least one {AN_ENDPOINT}"),
    "a path alone": Refused(made(endpoints=("/a",)), "endpoints='/a'", f"a tuple of {AN_ENDPOINT}"),
    "an empty path": Refused(
        made(endpoints=(Endpoint(""),)),
        "Endpoint.path=''",
        "how the path of the URL ends, such as '/v1/generate'",
    ),
    "a path that is no pattern": Refused(
        made(endpoints=(Endpoint("/a["),)),
        "the path '/a[' of an endpoint is no regular expression: unterminated character set",
    ),
    "members without types": Refused(
        made(endpoints=(Endpoint("/a", has=list(BY_NAME)),)),  # type: ignore[arg-type]  # on purpose
        "Endpoint.has=['q']",
        TYPES,
    ),
    "a type by name": Refused(
        made(endpoints=(Endpoint("/a", has_one=BY_NAME),)), "Endpoint.has_one={'q': 'str'}", TYPES
    ),
    "paths as a list": Refused(made(text=["a"]), "text=['a']", "Paths([...])"),
    "no path": Refused(made(media=Paths(["a b"], late=True)), NO_PATH),
    "a text for names": Refused(made(turns="messages"), "turns='messages'", TEXTS),
    "numbers for names": Refused(made(signed=[1]), "signed=[1]", TEXTS),
    "no function": Refused(made(finish="why"), "finish='why'", "a function"),
    "no folds": Refused(made(folds=None), "folds=None", "Folds(...)"),
    "no defaults": Refused(
        folding(defaults=["n"]), "folds.defaults=['n']", "a mapping by member of the body"
    ),
    "a text of nulls": Refused(folding(null="n"), "folds.null='n'", TEXTS),
    "a list of paths": Refused(folding(single_text=["a"]), "folds.single_text=['a']", "Paths([...])"),
    "no host": Refused(folding(is_own_host="a.com"), "folds.is_own_host='a.com'", "a function"),
    "no pairs": Refused(folding(below={"a": {}}), "folds.below={'a': {}}", PAIRS),
    "no pair": Refused(folding(below=((Paths(["a"]), 1),)), "folds.below=(({paths}, 1),)", PAIRS),
    "no pieces": Refused(made(pieces="parts"), "pieces='parts'", "Pieces(...) or None"),
    "no system": Refused(made(system="first"), "system='first'", "SystemPrompt(...) or None"),
    "no check": Refused(
        made(system=SystemPrompt("first", missing=True)),  # type: ignore[arg-type]  # on purpose
        "system.missing=True",
        "a function",
    ),
    "no table": Refused(made(stream=ONE_TABLE), "stream={ends}", "StreamTable(...) or None"),
    "no tables": Refused(made(other_streams=[STREAM]), "other_streams=[{stream}]", TABLES),
    "not a table": Refused(made(other_streams=("sse",)), "other_streams='sse'", TABLES),
    "one framing twice": Refused(
        made(stream=STREAM, other_streams=(STREAM,)),
        "two stream tables have the framing 'sse'; make them one",
    ),
    "an unknown framing": Refused(
        streaming(framing="xml"),
        "stream.framing='xml'",
        "one of 'sse', 'ndjson', 'json-array', 'eventstream'",
    ),
    "a text of texts": Refused(streaming(text="say"), "stream.text='say'", TUPLE),
    "numbers of texts": Refused(streaming(ends=(1,)), "stream.ends=(1,)", TUPLE),
    "a list of types": Refused(streaming(types=["a"]), "stream.types=['a']", "a frozenset of texts, or None"),
    "a total of nothing": Refused(
        streaming(totals=(("whole", "said"),)), "stream.totals=('whole', 'said')", SUMS
    ),
    "a total alone": Refused(streaming(totals="whole"), "stream.totals='whole'", SUMS),
    "no ping": Refused(streaming(ping="ping"), "stream.ping='ping'", "Event(...) or None"),
    "no noise": Refused(streaming(noise=True), "stream.noise=True", "Noise(...)"),
    "no text": Refused(
        streaming(text=()),
        "a stream table joins and cuts text; name where it stands: text=('response',)",
    ),
    "an index": Refused(
        streaming(last=("a[0]",)), "the path 'a[0]' of a stream table may hold names and [*] only"
    ),
    "no opaque path": Refused(streaming(opaque=("a b",)), NO_PATH),
    "no progress": Refused(streaming(progress="[DONE]"), "stream.progress='[DONE]'", PROGRESS),
    "a progress that changes": Refused(
        streaming(progress=Changing()),
        "a stream table holds what cannot be hashed: unhashable type: 'Changing'; write a tuple",
    ),
    "half a progress": Refused(
        streaming(progress=Half), f"stream.progress made <half>, which has no {HALF}; it takes {PROGRESS}"
    ),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_what_could_not_be_used_is_refused(refused: Refused) -> None:
    """With the dialect, the member and what to write instead; and nothing is registered."""
    with pytest.raises(OptionError) as caught:
        register(refused.make())

    said = re.sub(r"<httpx_cassette\._paths\.Paths object at 0x\w+>", "{paths}", str(caught.value))
    said = said.replace(repr(STREAM), "{stream}").replace(repr(ONE_TABLE), "{ends}")
    assert f"the dialect 'my-gateway': {refused.message}" == said
    assert {} == _REGISTERED


@pytest.mark.parametrize("name", ["", "my gateway", "Mine", "gäteway", "-mine", "x" * 65, 7, None, "a\n"])
def test_a_name_is_one_word(name: Any) -> None:
    """It stands in recordings, in reports, and on command lines."""
    with pytest.raises(OptionError) as caught:
        register(gateway(name))

    assert (
        f"the name {name!r} of a dialect is not understood; it takes up to 64 lower-case letters, digits, "
        "'-', '_' and '.', such as 'my-gateway'"
    ) == str(caught.value)


@pytest.mark.parametrize("given", [None, "my-gateway", STREAM, Dialect])
def test_only_a_dialect_is_one(given: Any) -> None:
    """A table of its streams is not enough."""
    with pytest.raises(OptionError) as caught:
        register(given)

    assert (
        f"a dialect is a Dialect, not {given!r}; write Dialect(name='my-gateway', endpoints=(...))"
    ) == str(caught.value)


def test_all_that_a_dialect_can_say_is_taken() -> None:
    """Nothing is refused that the types allow."""
    mine = gateway(
        pieces=Pieces("messages", frozenset({"assistant"}), "parts"),
        system=SYSTEM_MESSAGE,
        folds=Folds(below=((Paths(["a"]), {"b": 1}),)),
        stream=replace(STREAM, totals=(("whole", "say"),), types=frozenset({"a"}), noise=Noise(crlf=True)),
        other_streams=(
            replace(STREAM, framing="ndjson", progress=LINES),
            replace(STREAM, framing="json-array"),
        ),
        held=functools.partial(list),
    )

    assert mine is register(mine)


# -- with a transport ----------------------------------------------------------------------------------

SAID = b'data: {"say":"Hel","p":"x"}\n\ndata: {"say":"lo","p":"yyy"}\n\ndata: [END]\n\n'


def server(request: httpx.Request) -> httpx.Response:
    """Answer as the gateway does."""
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=SAID)


def ask(path: Path, body: Any, **options: Any) -> bytes:
    """Make one call."""
    options = {"next_transport": httpx.MockTransport(server), **options}
    with httpx.Client(transport=CassetteTransport(path, **options)) as client:
        return client.post(URL, json=body).content


def speaking(**members: Any) -> Dialect:
    """Return the dialect of the gateway."""
    stream = replace(STREAM, padding=("p",))
    return gateway(**{"folds": Folds(defaults={"n": 1}), "stream": stream, **members})


def test_the_streams_of_a_registered_dialect_are_assembled_and_cut(tmp_path: Path) -> None:
    """They are stored as what was said, under the name of the dialect, and replayed in pieces of any size."""
    register(speaking())
    path = tmp_path / "chat.jsonl"
    ask(path, {"q": "?", "stream": True}, mode="record")
    (line,) = lines(path)

    assert "my-gateway" == line["dialect"]
    assert [{"json": {"say": "Hello"}}, {"text": "[END]"}] == line["response"]["script"]
    pieces = b"".join(b'data: {"say":"%c"}\n\n' % letter for letter in b"Hello")
    assert pieces + b"data: [END]\n\n" == ask(path, {"q": "?", "stream": True}, chunk_size=1)


def test_its_rules_enter_the_key_and_its_name_does_not(tmp_path: Path) -> None:
    """What no rule touches keeps its key; where a rule changes its meaning, ``extra`` gives new ones."""

    def keys(**options: Any) -> list[str]:
        transport = CassetteTransport(tmp_path / "chat.jsonl", **options)
        bodies: list[Any] = [{"q": "?"}, {"q": "?", "n": 1}]
        return [transport.fingerprint(httpx.Request("POST", URL, json=body)) for body in bodies]

    plain, with_default = keys()
    register(speaking())
    folded = keys()

    assert plain != with_default
    assert [plain, plain] == folded
    assert len({plain, *keys(key_policy=KeyPolicy(extra={"my-gateway": 2}))}) == 2


def test_its_system_prompt_is_guarded(tmp_path: Path) -> None:
    """As in any other format."""
    register(speaking(system=SYSTEM_MESSAGE))

    with pytest.raises(SystemPromptMissing) as caught:
        ask(tmp_path / "chat.jsonl", {"q": "?"}, mode="record", on_miss=None)
    assert "my-gateway" == caught.value.dialect


def test_an_answer_that_failed_is_not_stored(tmp_path: Path) -> None:
    """Where the dialect says that it did."""
    register(speaking(is_failure=At("failed")))
    path = tmp_path / "chat.jsonl"
    failing = httpx.MockTransport(lambda request: httpx.Response(200, json={"failed": True}))
    ask(path, {"q": "?"}, mode="record", next_transport=failing)

    assert [] == lines(path)


@pytest.mark.filterwarnings("error")
def test_a_recording_of_a_dialect_that_nobody_registered_is_replayed_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the key is the same all the same; the log says once what is missing, and nothing is raised."""
    path = tmp_path / "chat.jsonl"
    register(speaking())
    ask(path, {"q": "?", "stream": True}, mode="record")
    unregister("my-gateway")

    with httpx.Client(transport=CassetteTransport(path, chunk_size=1)) as client:
        replayed = [client.post(URL, json={"q": "?", "stream": True}).content for _ in range(2)]
    assert [b'data: {"say":"Hello"}\n\ndata: [END]\n\n'] * 2 == replayed
    assert [
        f"{path}:1 is a stream of the dialect 'my-gateway', which is not registered in this process, so that "
        "its texts are replayed whole; import the module that calls httpx_cassette.dialects.register, in "
        "conftest.py for example"
    ] == [record.message for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.filterwarnings("error")
def test_a_stream_that_cannot_be_proved_is_told_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and the caller has it: what stops a call is no warning."""
    monkeypatch.setattr("httpx_cassette._live_stream.prove", lambda *arguments: "the texts differ")
    register(speaking())
    options: dict[str, Any] = {"mode": "rerecord", "next_transport": httpx.MockTransport(server)}
    with httpx.Client(transport=CassetteTransport(tmp_path / "chat.jsonl", **options)) as client:
        given = [client.post(URL, json={"q": q, "stream": True}).content for q in "ab"]

    assert [SAID] * 2 == given
    assert [
        "a stream of the dialect 'my-gateway' is stored event by event, because the texts differ; please "
        "report it"
    ] == [record.message for record in caplog.records if record.levelname == "WARNING"]


def test_a_miss_names_the_dialects_that_nobody_registered(tmp_path: Path) -> None:
    """Without the rules the key is another: the report says whose they are."""
    path = tmp_path / "chat.jsonl"
    register(speaking())
    ask(path, {"q": "?", "stream": True, "n": 1}, mode="record")
    unregister("my-gateway")

    with pytest.raises(CassetteMiss) as caught:
        ask(path, {"q": "?", "stream": True, "n": 1}, on_miss=None)
    assert (
        "  recordings of the dialect 'my-gateway' are there, which is not registered in this process; import "
        "the module that calls httpx_cassette.dialects.register"
    ) in str(caught.value).splitlines()


# -- what its functions raise --------------------------------------------------------------------------


def fail(*given: object) -> Any:
    """Raise what quotes a secret."""
    raise KeyError("sk-of-the-caller")


class Failing(Endpoint):
    """An endpoint with a test of its own."""

    def fits(self, body: Any) -> bool:
        return bool(fail(body))


FAILED = (
    "a function of the dialect 'my-gateway' raised KeyError at test_register.py:"
    f"{fail.__code__.co_firstlineno + 2}; mend it, or report it where the dialect is not yours"
)

#: What fails -> the dialect of the gateway.
FAILING: dict[str, Dialect] = {
    "endpoint": speaking(endpoints=(Failing("/ask"),)),
    "system": speaking(system=SystemPrompt("first", fail)),
    "held": speaking(held=fail, references=Paths(["id"])),
    "sampling": speaking(folds=Folds(defaults={"n": 1}, sampling=frozenset({"n"}), decides_sampling=fail)),
}


@pytest.mark.parametrize("mode", ["replay", "record"])
@pytest.mark.parametrize("dialect", FAILING.values(), ids=FAILING)
def test_a_function_that_fails_before_a_call_stops_it(dialect: Dialect, mode: str, tmp_path: Path) -> None:
    """Nothing is sent, the dialect is named, and the ledger has it: no SDK can make less of it."""
    register(dialect)
    inner = httpx.MockTransport(fail)
    with pytest.raises(CassetteUnusable) as caught:
        asked = {"q": "?", "n": 1, "id": "a"}
        ask(tmp_path / "chat.jsonl", asked, mode=mode, next_transport=inner, on_miss=None)

    assert ["CassetteUnusable"] == [entry.kind for entry in _ledger.entries()]
    assert f"the key of POST {URL} cannot be computed\n  because      {FAILED}" == str(caught.value)


def test_a_function_that_fails_behind_a_look_up_stops_the_call(tmp_path: Path) -> None:
    """Whether a hit rests on a default can be told by nobody."""
    path = tmp_path / "chat.jsonl"
    register(speaking())
    ask(path, {"q": "?"}, mode="record")
    unregister("my-gateway")
    register(speaking(folds=Folds(defaults={"n": 1}, is_own_host=fail)))
    with pytest.raises(CassetteUnusable) as caught:
        ask(path, {"q": "?"}, on_miss=None)

    assert (
        f"the recording of POST {URL} cannot be answered from\n  because      {FAILED}\n"
        f"  fingerprint  {caught.value.fingerprint}"
    ) == str(caught.value)


class Watch:
    """A progress of which one member fails."""

    awaits_more = is_complete = is_terminated = False
    error: Any = None
    finish: Any = None

    def expect(self, request: Any) -> None:
        """Take any request."""

    def observe(self, event: Any, value: Any) -> None:
        """Take any event."""


def computed(name: str) -> type[Watch]:
    """Return a progress of which one member fails once it has seen an event."""

    def observe(self: Any, event: Any, value: Any) -> None:
        self.seen = True

    members = {name: property(lambda self: fail() if hasattr(self, "seen") else None), "observe": observe}
    return type("Watch", (Watch,), members)


PROGRESSES: dict[str, type[Watch]] = {
    "expect": type("Watch", (Watch,), {"expect": fail}),
    "observe": type("Watch", (Watch,), {"observe": fail}),
    **{name: computed(name) for name in ("awaits_more", "error", "finish", "is_complete", "is_terminated")},
}


@pytest.mark.parametrize("progress", PROGRESSES.values(), ids=PROGRESSES)
def test_a_progress_that_fails_costs_the_caller_nothing(
    progress: type[Watch], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """He has the answer that was paid for; it is not recorded, because nobody knows whether it is whole."""
    register(speaking(stream=replace(STREAM, progress=progress)))
    path = tmp_path / "chat.jsonl"

    assert SAID == ask(path, {"q": "?", "stream": True}, mode="record")
    assert [] == lines(path)
    said = [record.getMessage() for record in caplog.records]
    assert [f"not recorded: POST {URL} failed: {FAILED}", "answers that were not recorded: 1 failed"] == said


@pytest.mark.parametrize("member", ["finish", "is_failure"])
def test_an_answer_that_a_function_fails_at_is_in_the_error(member: str, tmp_path: Path) -> None:
    """It was paid for and cannot be stored: the error carries it, and names the dialect."""
    register(speaking(**{member: fail}))
    path = tmp_path / "chat.jsonl"
    inner = httpx.MockTransport(lambda request: httpx.Response(200, json={"say": "hi"}))
    with pytest.raises(CassetteWriteError) as caught:
        ask(path, {"q": "?"}, mode="record", next_transport=inner, on_miss=None)

    assert b'{"say":"hi"}' == caught.value.content
    assert (
        f"the answer was paid for and could not be stored: {FAILED}\n"
        "  the answer   200, 12 bytes: status, headers and content of this error\n"
        f"  fingerprint  {caught.value.fingerprint}"
    ) == str(caught.value)
    assert [] == lines(path)
