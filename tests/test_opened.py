"""A cassette as people read it: iterated, looked up, shown in a notebook."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

import httpx_cassette
from httpx_cassette import Cassette, CassetteError
from httpx_cassette._cassette import Spot
from httpx_cassette._index import Damage
from httpx_cassette.readers import Message, ToolCall

from ._recordings import line as bare_line
from .example_cassette import chat, chat_answer, example_lines, exchange_line, said, write_example

URL = "https://api.openai.com/v1/chat/completions"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the example cassette."""
    return write_example(tmp_path / "chat.jsonl")


def test_an_exchange_says_what_was_asked_and_answered(path: Path) -> None:
    """All that people look for is an attribute, whatever the wire format."""
    exchange = next(each for each in httpx_cassette.open(path) if each.dialect == "anthropic-messages")

    assert [
        Message("system", "You sort messages to a shop. Answer with one word."),
        Message("user", "I was charged twice for order 1042, see the invoice."),
    ] == exchange.messages
    assert ("Billing: the customer was charged twice.", (), "") == (
        exchange.text,
        exchange.tool_calls,
        exchange.thinking,
    )
    assert ("claude-sonnet-5", "end_turn", 31, 9) == (
        exchange.model,
        exchange.finish,
        exchange.usage.input_tokens,
        exchange.usage.output_tokens,
    )
    assert ("2026-11-29T12:00:00Z", 1530, 0, 0, 4, str(path)) == (
        exchange.at,
        exchange.ms,
        exchange.sample,
        exchange.gen,
        exchange.line,
        exchange.path,
    )
    assert ("cfc46387a771", 64) == (exchange.fingerprint[:12], len(exchange.fingerprint))
    assert ("POST", 200, {}) == (exchange.request["method"], exchange.response["status"], exchange.policy)
    assert example_lines()[3] == exchange.raw


def test_a_call_of_a_tool_is_typed(path: Path) -> None:
    """Name, arguments as they were written, and the id that ties the result to it."""
    calls = [each.tool_calls for each in httpx_cassette.open(path) if each.tool_calls]

    assert [(ToolCall("find_order", '{"id": 1042}', "call_1"),)] == calls


def test_what_was_recorded_anew_is_superseded(path: Path) -> None:
    """The highest generation counts, with all its samples; iterating a second time gives the same."""
    recordings = httpx_cassette.open(path)

    assert [[1], [1]] == [[each.line for each in recordings if each.superseded] for _ in range(2)]


def test_of_two_lines_for_one_answer_the_last_intact_one_counts(tmp_path: Path) -> None:
    """A damaged line hides none."""
    first, second, third = (bare_line("a", text) for text in ("one", "two", "six"))
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([first, second, third.replace(b"six", b"ten"), b""]))
    recordings = httpx_cassette.open(tmp_path / "a.jsonl")

    assert [(1, True), (2, False)] == [(each.line, each.superseded) for each in recordings]
    assert [Damage(3, "edited by hand, or damaged")] == recordings.damaged


def test_damage_is_named_and_passed_over(tmp_path: Path) -> None:
    """It is the same whether the file was read before or not."""
    lines = example_lines()
    lines[1] = lines[1].replace(b"Complaint", b"Compliment")
    lines[2] = lines[2][:200]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*lines, b""]))
    recordings, others = (httpx_cassette.open(tmp_path / "a.jsonl") for _ in range(2))

    assert [1, 4, 5, 6, 7, 8] == [each.line for each in recordings]
    found = [Damage(2, "edited by hand, or damaged"), Damage(3, "damaged")]
    assert (found, found) == (recordings.damaged, others.damaged)


def test_recordings_are_found_by_the_beginning_of_their_fingerprint(path: Path) -> None:
    """All of one key are found, and of several keys, in the order of their lines."""
    recordings = httpx_cassette.open(path)

    assert [1, 7, 8] == [each.line for each in recordings.find("B869")]
    assert [1, 7, 8] == [each.line for each in recordings.find(next(iter(recordings)).fingerprint)]
    assert [[], [], []] == [list(recordings.find(each)) for each in ("b00", "b" * 64, "z" * 64)]
    assert list(range(1, 9)) == [each.line for each in recordings.find("")]
    assert 6 == len(recordings.fingerprints)


def test_recordings_of_another_key_version_are_counted(tmp_path: Path) -> None:
    """They are not iterated, as no call finds them."""
    recordings = httpx_cassette.open(write_example(tmp_path / "a.jsonl", bare_line("old", key_version=7)))

    assert ({7: 1}, 8) == (recordings.other_versions, len(list(recordings)))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """So is a folder."""
    with pytest.raises(CassetteError) as absent:
        httpx_cassette.open(tmp_path / "a.jsonl")
    with pytest.raises(CassetteError) as folder:
        httpx_cassette.open(tmp_path)

    assert f"{tmp_path}/a.jsonl: there is no such file; name one that is there, or record it first" == str(
        absent.value
    )
    assert f"{tmp_path}: the path is a folder; name a file in it, such as chat.jsonl" == str(folder.value)


def test_a_call_in_no_known_format_is_its_body(path: Path) -> None:
    """The text is the answer as it is; the question is what stands where texts mostly do."""
    exchange = next(each for each in httpx_cassette.open(path) if each.dialect == "generic")

    assert ("parcel", [], []) == (exchange.question, exchange.messages, exchange.answers)
    assert (
        '{"object":"list","data":[{"index":0,"embedding":[0.25,-0.5]}],'
        '"model":"text-embedding-3-small","usage":{"prompt_tokens":1,"total_tokens":1}}'
    ) == exchange.text


@pytest.mark.parametrize(
    ("body", "answer", "question", "text"),
    [
        ({"input": ["a", "b"]}, {"text": "as it is"}, "b", "as it is"),
        ({"query": 7}, {"base64": "aGk="}, "", ""),
        ([1], {"json": 2**70}, "", str(2**70)),
    ],
    ids=["text", "base64", "number"],
)
def test_other_bodies_say_what_they_can(
    body: object, answer: dict[str, object], question: str, text: str, tmp_path: Path
) -> None:
    """A text is shown as it is, other bytes not at all."""
    line = exchange_line("https://api.example.com/v1/thing", body, answer)  # type: ignore[arg-type]  # odd
    (tmp_path / "a.jsonl").write_bytes(line + b"\n")
    (exchange,) = httpx_cassette.open(tmp_path / "a.jsonl")

    assert (question, text) == (exchange.question, exchange.text)


def test_a_line_that_is_sealed_and_no_recording_says_nothing(tmp_path: Path) -> None:
    """Whatever was made of it, nothing is raised before a stream is asked for."""
    from httpx_cassette._line import seal

    key = "ab" * 32
    odd = (b'"response":7,"request":[1]', b'"response":{"script":7},"request":{"url":[]}', b'"response":}')
    lines = [
        seal(b'{"v":1,"kv":1,"key":"%b","sample":0,"gen":0,"at":5,%b' % (key.encode(), each)) for each in odd
    ]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*lines, b""]))
    for exchange in httpx_cassette.open(tmp_path / "a.jsonl"):
        assert ("", "", [], [], "", None, "generic") == (
            exchange.text,
            exchange.question,
            exchange.messages,
            exchange.answers,
            exchange.model,
            exchange.finish,
            exchange.dialect,
        )
        assert exchange._repr_html_()
        with pytest.raises(CassetteError):
            list(exchange.stream())


def test_the_repr_is_short(path: Path) -> None:
    """It says which recording it is, and how the answer begins."""
    recordings = httpx_cassette.open(path)

    assert f"<Recordings {path}>" == repr(recordings)
    assert f"<Exchange b8697e75a59f {path}:7 openai-chat 'Invoice'>" == repr(list(recordings)[6])
    assert f"<Exchange 86d3d3c14b0f {path}:3 openai-chat>" == repr(list(recordings)[2])


HOSTILE = "<script>alert(1)</script>\n<img src=x onerror='a()'>\"&\x1b]8;;http://a\x07\u202e"
ESCAPED = (
    "&lt;script&gt;alert(1)&lt;/script&gt;\n&lt;img src=x onerror=&#x27;a()&#x27;&gt;&quot;&amp;"
    "\\u001b]8;;http://a\\u0007\\u202e"
)


def test_nothing_recorded_is_html_in_a_notebook(tmp_path: Path) -> None:
    """Text is text, invisible characters are seen, and nothing is loaded."""
    body = chat("gpt-5", HOSTILE)
    line = exchange_line(URL, body, chat_answer(HOSTILE, said(HOSTILE), HOSTILE, (1, 2)), finish=HOSTILE)
    path = tmp_path / "<b>.jsonl"
    path.write_bytes(line + b"\n")
    (exchange,) = recordings = httpx_cassette.open(path)
    at, key, flat = "2026-11-29T12:00:00Z", exchange.fingerprint[:12], ESCAPED.replace("\n", "\\n")

    system = "You sort messages to a shop. Answer with one word."
    assert (
        f"<p><b>{key} openai-chat {ESCAPED} {at}</b></p><p>system</p><pre>{system}</pre>"
        f"<p>user</p><pre>{ESCAPED}</pre><p>answer</p><pre>{ESCAPED}</pre>"
    ) == exchange._repr_html_()
    names = ("fingerprint", "recorded", "dialect", "model", "question", "answer", "finish")
    head = "".join(f"<th>{name}</th>" for name in names)
    # A cell has 80 characters, escapes included.
    cut = f"{flat[: flat.index('http')]}"
    table = recordings._repr_html_()
    assert (
        f"<p>{tmp_path}/&lt;b&gt;.jsonl</p><table><tr>{head}</tr><tr><td>{key}</td><td>{at}</td>"
        == (table[: table.index("<td>openai-chat")])
    )
    assert f"<td>{ESCAPED}</td></tr></table>" == table[-len(f"<td>{ESCAPED}</td></tr></table>") :]
    assert 2 == table.count(f"<td>{cut}")


def test_a_notebook_shows_the_first_rows(tmp_path: Path) -> None:
    """And says how many there are."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(bare_line(number) + b"\n" for number in range(25)))
    shown = httpx_cassette.open(path)._repr_html_()

    assert (21, "</table><p>the first 20 of 25 recordings</p>") == (
        shown.count("<tr>"),
        shown[shown.index("</table>") :],
    )


def test_calls_and_thoughts_are_shown_in_a_notebook(path: Path) -> None:
    """A call is its name and its arguments."""
    shown = list(httpx_cassette.open(path))[2]._repr_html_()

    assert (
        "<p>answer</p><i>calls</i><pre>find_order({&quot;id&quot;: 1042})</pre>"
        == (shown[shown.index("<p>answer") :])
    )


def test_reading_keeps_nothing_but_the_index(tmp_path: Path) -> None:
    """Of 16 MB that are read, next to nothing stays in memory."""
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        for number in range(160):
            file.write(bare_line(number, "x" * 100_000) + b"\n")
    tracemalloc.start()
    count = sum(len(exchange.text) > 0 for exchange in httpx_cassette.open(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 160 == count
    assert peak < 4_000_000


_BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model"
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/models"


@pytest.mark.parametrize(
    ("url", "model"),
    [
        (f"{_BEDROCK}/us.anthropic.claude-sonnet-5-v1%3A0/converse", "us.anthropic.claude-sonnet-5-v1:0"),
        (f"{_BEDROCK}/amazon.nova-2-lite-v1:0/invoke-with-response-stream", "amazon.nova-2-lite-v1:0"),
        (f"{_GEMINI}/gemini%2D3-flash:streamGenerateContent?alt=sse", "gemini-3-flash"),
        (
            "https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/"
            "gemini-3-flash:generateContent",
            "gemini-3-flash",
        ),
        ("https://api.openai.com/v1/models/list", ""),
        ("https://api.openai.com/v1/models/ft:gpt-5:shop::a1", ""),
        (f"{_GEMINI}?pageSize=7", ""),
    ],
    ids=["bedrock", "bedrock-stream", "gemini", "vertex", "list", "fine-tuned", "all"],
)
def test_the_model_is_read_from_an_address_that_names_one(url: str, model: str, tmp_path: Path) -> None:
    """Without its percent signs, and the same for the exchange as for what it costs; a list has no model."""
    line = exchange_line(url, {"a": "b"}, {"json": {}})
    (tmp_path / "a.jsonl").write_bytes(line + b"\n")
    (exchange,) = httpx_cassette.open(tmp_path / "a.jsonl")

    assert (model, model) == (exchange.model, exchange.usage.model)


def test_finding_keeps_nothing_but_the_index(tmp_path: Path) -> None:
    """Whatever a beginning fits, one line is in memory at a time; nothing is read that is not asked for."""
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        for number in range(160):
            file.write(bare_line("a", "x" * 100_000, sample=number) + b"\n")
    recordings = httpx_cassette.open(path)
    tracemalloc.start()
    counts = [sum(1 for _ in recordings.find(prefix)) for prefix in ("", "ca97", recordings.fingerprints[0])]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [160] * 3 == counts
    assert peak < 4_000_000


def test_what_counts_of_a_key_is_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is polled has thousands of lines, and each is looked up once, not once for each other."""
    path = tmp_path / "a.jsonl"
    lines = [bare_line("a", sample=number, gen=gen) for gen in (0, 1) for number in range(20)]
    path.write_bytes(b"\n".join([*lines, *lines[-2:], b""]))
    spots, looked = Cassette.spots, list[bytes]()

    def count(cassette: Cassette, key: bytes) -> list[Spot]:
        looked.append(key)
        return spots(cassette, key)

    monkeypatch.setattr(Cassette, "spots", count)
    superseded = [each.line for each in httpx_cassette.open(path) if each.superseded]

    assert [*range(1, 21), 39, 40] == superseded
    assert 1 == len(looked)
