"""What is no conversation: speech, images, batches and files come back byte for byte, with any client."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from httpx_cassette import CassetteTransport, KeyPolicy

from .colours import Body, Colour, in_every_colour, lines, router

HOST = "https://api.example.com"

#: What an encoder of MP3 writes, as far as that matters here: it is no text.
SPEECH = b"\xff\xfb\x90\x00" + bytes(range(256)) * 50


def upstream(*answers: httpx.Response) -> Any:
    """Return a server that gives these answers, one after the other."""
    made = router()
    made.route(host="api.example.com").mock(side_effect=list(answers))
    return made


async def exchange(
    colour: Colour, path: Path, answer: httpx.Response | None, method: str, url: str, **given: Any
) -> tuple[int, dict[str, str], bytes]:
    """Make one call, recorded where there is an answer to it, else replayed."""
    options = {k: given.pop(k) for k in ("wire_chunk_size", "key_policy") if k in given}
    client = colour.client(
        path, upstream(answer) if answer else None, mode="record" if answer else "replay", **options
    )
    async with client:
        response = await client.request(method, url, **given)
        return response.status_code, dict(response.headers), await client.read(response)


# -- files ---------------------------------------------------------------------------------------------

FILES = {
    "nothing": b"",
    "nulls": b"\x00\x00\x00",
    "every byte": bytes(range(256)),
    "crlf": b"a,b\r\n1,2\r\n",
    "a lone return": b"a\rb\n",
    "no newline at the end": b"a\nb",
    "mark of UTF-8": b"\xef\xbb\xbfname\n",
    "mark of UTF-16": "name\n".encode("utf-16"),
    "torn UTF-8": b"Z\xc3",
    "text that acts on terminals": "\x1b[31m\x85\u2028\u2029\x7f".encode(),
    "compact": b'{"a":[1,2.5,null]}',
    "spaced": b'{"a": [1, 2.5, null]}\n',
    "indented": b'{\n  "a": 1\n}\n',
    "indented by four": b'{\n    "a": 1\n}',
    "odd spaces": b' { "a" :1 , "b":[ ] } \r\n',
    "numbers in other words": b'{"a":1.50,"b":1e2,"c":-0,"d":18446744073709551617}',
    "escapes": b'{"a":"\\u00fc\\/\\ud83d\\ude00"}',
    "a lone surrogate": b'{"a":"\\ud800"}',
    "a mark before JSON": b'\xef\xbb\xbf{"a":1}',
    "no JSON": b'{"a": NaN}',
    "one line": b'{"custom_id":"1","response":{"status_code":200}}\n',
    "lines": b'{"custom_id": "1"}\n{"custom_id":"2"}\r\n\n{"custom_id":"3"}',
    "events": b"data: 1\r\n\r\n: comment\n",
}

#: What servers say of any file.
TYPES = ["application/json", "application/octet-stream", "application/x-jsonl", "text/plain; charset=latin-1"]


@pytest.mark.parametrize("content_type", TYPES)
@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_file_comes_back_byte_for_byte(content: bytes, content_type: str, tmp_path: Path) -> None:
    """Whatever it holds and whatever the server calls it, the type and the name included."""
    named = {"content-type": content_type, "content-disposition": 'attachment; filename="results.jsonl"'}

    asked: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        return httpx.Response(200, headers=named, content=content)

    path = tmp_path / "files.jsonl"
    said = []
    for mode in ("record", "replay"):
        transport = CassetteTransport(path, mode=mode, next_transport=httpx.MockTransport(server))
        with httpx.Client(transport=transport) as client:
            response = client.get(f"{HOST}/v1/files/file-1/content")
            said.append((response.content, response.headers["content-disposition"]))

    assert [(content, named["content-disposition"])] * 2 == said
    assert ["GET"] == asked


@in_every_colour
async def test_the_part_of_a_file_that_was_asked_for_says_which(colour: Colour, tmp_path: Path) -> None:
    """A client that resumes looks at the range; two ranges are two keys where the policy says so."""
    ranges = KeyPolicy(headers=["range"])
    path, url = tmp_path / "files.jsonl", f"{HOST}/v1/files/file-1/content"
    asked = [{"range": "bytes=0-3"}, {"range": "bytes=4-7"}]
    answers = [
        httpx.Response(206, headers={"content-range": f"bytes {i * 4}-{i * 4 + 3}/8"}, content=part)
        for i, part in enumerate((b"\x00\xff01", b"2345"))
    ]
    for each, answer in zip(asked, answers, strict=True):
        await exchange(colour, path, answer, "GET", url, headers=each, key_policy=ranges)
    # Backwards: nothing depends on the order.
    replayed = [
        await exchange(colour, path, None, "GET", url, headers=each, key_policy=ranges)
        for each in asked[::-1]
    ]

    assert [
        (206, {"content-range": "bytes 4-7/8", "content-length": "4"}, b"2345"),
        (206, {"content-range": "bytes 0-3/8", "content-length": "4"}, b"\x00\xff01"),
    ] == replayed


@pytest.mark.parametrize(
    ("method", "answer", "expected"),
    [
        ("HEAD", httpx.Response(200, headers={"content-length": "12804"}), (200, {}, b"")),
        ("DELETE", httpx.Response(204), (204, {}, b"")),
        (
            "GET",
            httpx.Response(302, headers={"location": "https://cdn.example.com/f?id=7"}),
            (302, {"location": "https://cdn.example.com/f?id=7"}, b""),
        ),
        ("GET", httpx.Response(304), (304, {}, b"")),
        ("POST", httpx.Response(200, headers={"content-length": "0"}), (200, {}, b"")),
    ],
    ids=["head", "no content", "redirect", "not modified", "empty"],
)
@in_every_colour
async def test_an_answer_without_a_body_is_one(
    colour: Colour, method: str, answer: httpx.Response, expected: Any, tmp_path: Path
) -> None:
    """It is stored, and replayed as it was: with its status, and with no length that is another's."""
    path, url = tmp_path / "files.jsonl", f"{HOST}/v1/files/file-1"
    # Each colour takes the answer anew: a body is read once.
    again = httpx.Response(answer.status_code, headers=answer.headers)
    await exchange(colour, path, again, method, url)

    assert expected == await exchange(colour, path, None, method, url)


@in_every_colour
async def test_a_file_is_uploaded_once(colour: Colour, tmp_path: Path) -> None:
    """The boundary of the form is drawn anew at each call and means nothing; another file is another call."""
    path, url = tmp_path / "files.jsonl", f"{HOST}/v1/files"
    created = httpx.Response(200, json={"id": "file-1", "bytes": 3})
    form: dict[str, Any] = {"data": {"purpose": "batch"}, "files": {"file": ("a.bin", b"\x00\r\n")}}
    first = await exchange(colour, path, created, "POST", url, **form)
    second = await exchange(colour, path, None, "POST", url, **form)
    client = colour.client(path)
    requests = [
        client.real.build_request("POST", url, **{**form, "files": {"file": ("a.bin", content)}})
        for content in (b"\x00\r\n", b"\x00\n")
    ]

    assert first[2] == second[2]
    stored, other = map(client.transport.fingerprint, requests)
    assert [stored] == [line["key"] for line in lines(path)]
    assert stored != other
    await client.close()


@in_every_colour
async def test_an_upload_to_google_goes_on_where_it_is_told(colour: Colour, tmp_path: Path) -> None:
    """Its SDKs are told by a header where the bytes go, and by another that all of them came."""
    path, start = tmp_path / "files.jsonl", f"{HOST}/upload/v1beta/files"
    told = {"x-goog-upload-status": "active", "x-goog-upload-url": f"{start}?upload_id=AB12&key=secret"}
    done = httpx.Response(200, headers={"x-goog-upload-status": "final"}, json={"file": {"name": "files/1"}})
    await exchange(colour, path, httpx.Response(200, headers=told), "POST", start, json={"file": {}})
    _, replayed, _ = await exchange(colour, path, None, "POST", start, json={"file": {}})
    where = replayed["x-goog-upload-url"]
    await exchange(colour, path, done, "POST", told["x-goog-upload-url"], content=b"\x00\x01")
    _, ended, body = await exchange(colour, path, None, "POST", where, content=b"\x00\x01")

    # What lets anybody upload is in no recording, and not part of what is asked.
    assert start == where
    assert ("active", "final") == (replayed["x-goog-upload-status"], ended["x-goog-upload-status"])
    assert {"file": {"name": "files/1"}} == json.loads(body)


# -- speech --------------------------------------------------------------------------------------------


def spoken() -> httpx.Response:
    """Return speech as a server sends it while it speaks: in pieces of any size, without a length."""
    pieces = [SPEECH[:1], SPEECH[1:700], SPEECH[700:]]
    return httpx.Response(200, headers={"content-type": "audio/mpeg"}, stream=Body(pieces))


@pytest.mark.parametrize(("option", "size"), [({}, 4096), ({"wire_chunk_size": 1000}, 1000)])
@in_every_colour
async def test_speech_comes_in_pieces_of_one_size(
    colour: Colour, option: dict[str, Any], size: int, tmp_path: Path
) -> None:
    """Byte for byte, in pieces of 4,096 bytes or as many as are asked for, whatever the server's were."""
    path, url = tmp_path / "speech.jsonl", f"{HOST}/v1/audio/speech"
    asked = {"model": "tts-1", "voice": "alloy", "input": "Hello."}
    async with colour.client(path, upstream(spoken()), mode="record") as client:
        recorded = await client.streamed(asked, url)
    async with colour.client(path, **option) as client:
        pieces = await client.chunks(asked, url)
        whole = await client.ask(asked, url)

    assert SPEECH == recorded == b"".join(pieces) == whole.content
    assert [*[size] * (len(SPEECH) // size), len(SPEECH) % size] == [len(piece) for piece in pieces]
    assert ("audio/mpeg", str(len(SPEECH))) == (
        whole.headers["content-type"],
        whole.headers["content-length"],
    )
    (line,) = lines(path)
    assert base64.b64encode(SPEECH).decode() == line["response"]["base64"]
    assert "generic" == line["dialect"]


@in_every_colour
async def test_text_and_json_come_whole(colour: Colour, tmp_path: Path) -> None:
    """A subtitle is cut only where that is asked for, and JSON never."""
    path = tmp_path / "speech.jsonl"
    text = b"1\r\n00:00:00,000 --> 00:00:01,000\r\nHello.\r\n"
    answers = {
        "srt": httpx.Response(200, headers={"content-type": "text/plain"}, content=text),
        "json": httpx.Response(200, json={"text": "Hello."}),
    }
    found = {}
    for kind, answer in answers.items():
        url = f"{HOST}/v1/audio/transcriptions"
        async with colour.client(path, upstream(answer), mode="record") as client:
            await client.streamed({"response_format": kind}, url)
        async with colour.client(path) as client:
            whole = await client.chunks({"response_format": kind}, url)
        async with colour.client(path, wire_chunk_size=30) as client:
            found[kind] = [whole, await client.chunks({"response_format": kind}, url)]

    assert {"srt": [[text], [text[:30], text[30:]]], "json": [[b'{"text":"Hello."}']] * 2} == found


# -- images and batches --------------------------------------------------------------------------------


@in_every_colour
async def test_an_image_comes_back_as_it_was_written(colour: Colour, tmp_path: Path) -> None:
    """Made from a prompt, or from another image in a form; the recording holds JSON that can be read."""
    path = tmp_path / "images.jsonl"
    raw = b'{\n  "created": 1,\n  "data": [\n    {\n      "b64_json": "iVBORw0KGgo="\n    }\n  ]\n}'
    calls: list[tuple[str, dict[str, Any]]] = [
        ("generations", {"json": {"model": "gpt-image-1", "prompt": "A cat."}}),
        ("edits", {"data": {"prompt": "A hat."}, "files": {"image": ("cat.png", b"\x89PNG\r\n\x1a\n")}}),
    ]
    for name, given in calls:
        made = httpx.Response(200, headers={"content-type": "application/json"}, content=raw)
        await exchange(colour, path, made, "POST", f"{HOST}/v1/images/{name}", **given)
        _, _, replayed = await exchange(colour, path, None, "POST", f"{HOST}/v1/images/{name}", **given)
        assert raw == replayed
    assert ["indented"] * 2 == [line["response"]["layout"] for line in lines(path)]
    assert [json.loads(raw)] * 2 == [line["response"]["json"] for line in lines(path)]


@in_every_colour
async def test_a_batch_is_waited_for_and_its_results_fetched(colour: Colour, tmp_path: Path) -> None:
    """Each look at it is an answer of its own, in their order; the results are the same to the byte."""
    path, batch = tmp_path / "batch.jsonl", f"{HOST}/v1/batches/batch_1"
    results = b'{"custom_id": "b", "error": null}\n{"custom_id":"a"}\n'
    said = ["validating", "in_progress", "completed"]
    server = upstream(
        httpx.Response(200, json={"id": "batch_1", "status": said[0]}),
        *(httpx.Response(200, json={"id": "batch_1", "status": status}) for status in said),
        httpx.Response(200, headers={"content-type": "application/x-jsonl"}, content=results),
    )

    async def work(client: Any) -> Any:
        created = await client.ask({"input_file_id": "file-1"}, f"{HOST}/v1/batches")
        looks = [(await client.get(batch)).json()["status"] for _ in said]
        return created.json(), looks, (await client.get(f"{batch}/results")).content

    async with colour.client(path, server, mode="record") as client:
        recorded = await work(client)
    async with colour.client(path) as client:
        replayed = await work(client)
        last = (await client.get(batch)).json()["status"]

    assert ({"id": "batch_1", "status": "validating"}, said, results) == recorded == replayed
    assert "completed" == last
