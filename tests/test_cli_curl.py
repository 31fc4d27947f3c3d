"""A curl command line becomes the call that curl would make; the table was checked against curl 7.88."""

from __future__ import annotations

import pytest

from httpx_cassette._call import Call
from httpx_cassette._errors import OptionError
from httpx_cassette.cli._curl import is_curl, read_curl

FILES = {"a.json": b'{"a":\r\n1}', "s.png": b"\x89PNG", "who": b"ann lee"}
URL = "https://api.example.com/v1"
FORM = ("Content-Type", "application/x-www-form-urlencoded")
JSON = ("Content-Type", "application/json")
PARTS = ("Content-Type", "multipart/form-data; boundary=httpx-cassette-explains")


def read(text: str) -> tuple[str, str, tuple[tuple[str, str], ...], bytes]:
    """Return method, URL, headers as text, and body."""
    call: Call = read_curl(text, FILES.__getitem__)
    headers = tuple((name.decode(), value.decode()) for name, value in call.headers)
    return call.method, call.url, headers, call.body


def parts(*pieces: str) -> bytes:
    """Return a multipart body."""
    delimiter = "--httpx-cassette-explains"
    text = "".join(f"{delimiter}\r\n{piece}\r\n" for piece in pieces) + f"{delimiter}--\r\n"
    return text.encode("latin-1")


#: What follows ``curl`` -> method, URL, headers, body.
LINES = {
    "get": (URL, ("GET", URL, (), b"")),
    "no-scheme": ("example.com/v1", ("GET", "http://example.com/v1", (), b"")),
    "url-option": (f"--url {URL}", ("GET", URL, (), b"")),
    "dashes": (f"-- {URL}", ("GET", URL, (), b"")),
    "method": (f"-X DELETE {URL}", ("DELETE", URL, (), b"")),
    "attached": (f"-Xpatch {URL}", ("PATCH", URL, (), b"")),
    "head": (f"-I {URL}", ("HEAD", URL, (), b"")),
    "json": (f"{URL} --json '{{\"a\": 1}}'", ("POST", URL, (JSON,), b'{"a": 1}')),
    "json-twice": (f"{URL} --json '[1' --json ',2]'", ("POST", URL, (JSON,), b"[1,2]")),
    "data": (f"{URL} -d a=1 --data b=2", ("POST", URL, (FORM,), b"a=1&b=2")),
    "own-type": (
        f"{URL} -H 'content-type: application/json' -d '{{}}'",
        ("POST", URL, (("content-type", "application/json"),), b"{}"),
    ),
    "data-file": (f"{URL} -d @a.json", ("POST", URL, (FORM,), b'{"a":1}')),
    "binary-file": (f"{URL} --data-binary @a.json", ("POST", URL, (FORM,), b'{"a":\r\n1}')),
    "json-file": (f"{URL} --json @a.json", ("POST", URL, (JSON,), b'{"a":\r\n1}')),
    "raw": (f"{URL} --data-raw @a.json", ("POST", URL, (FORM,), b"@a.json")),
    "url-encoded": (
        f"{URL} --data-urlencode 'q=a b&c' --data-urlencode 'x y' --data-urlencode n@who",
        ("POST", URL, (FORM,), b"q=a+b%26c&x+y&n=ann+lee"),
    ),
    "surrogate": (
        f"{URL} --data-urlencode $'a\\ud800=\\ud800'",
        ("POST", URL, (FORM,), b"a\xed\xa0\x80=%ED%A0%80"),
    ),
    "get-with-data": (f"-G {URL}?a=1#f -d b=2", ("GET", f"{URL}?a=1&b=2#f", (), b"")),
    "headers": (
        f"{URL} -H 'Name:' -H 'A: b: c' -A me -e there -b c=1",
        ("GET", URL, (("A", "b: c"), ("User-Agent", "me"), ("Referer", "there"), ("Cookie", "c=1")), b""),
    ),
    "user": (f"-u ann:word {URL}", ("GET", URL, (("Authorization", "Basic YW5uOndvcmQ="),), b"")),
    "bearer": (f"--oauth2-bearer t {URL}", ("GET", URL, (("Authorization", "Bearer t"),), b"")),
    "bundle": (f"-sSLd x {URL}", ("POST", URL, (FORM,), b"x")),
    "passed-over": (
        f"--silent -o out --max-time 5 --compressed -w '%{{http_code}}' {URL}",
        ("GET", URL, (), b""),
    ),
    "goes-on": (f"{URL} \\\n  -X PUT \\\r\n -d 1\n", ("PUT", URL, (FORM,), b"1")),
    "goes-on-in-quotes": (f"{URL} -d 'a\\\nb'", ("POST", URL, (FORM,), b"a\\\nb")),
    "bash": (
        f"{URL} --data-raw $'It\\'s \\u0021 \\x41\\102\\n\\U0001F600'",
        ("POST", URL, (FORM,), "It's ! AB\n😀".encode()),
    ),
    "escaped-quotes": (f'{URL} -d "a \\"b\\" $\'c\'"', ("POST", URL, (FORM,), b"a \"b\" $'c'")),
    "pipe": (f"-d 1 {URL} | jq .", ("POST", URL, (FORM,), b"1")),
    "form": (
        f"{URL} -F 'model=whisper-1' -F 'a=1;type=text/x' --form-string 'b=@x;y'",
        (
            "POST", URL, (PARTS,),
            parts(
                'Content-Disposition: form-data; name="model"\r\n\r\nwhisper-1',
                'Content-Disposition: form-data; name="a"\r\nContent-Type: text/x\r\n\r\n1',
                'Content-Disposition: form-data; name="b"\r\n\r\n@x;y',
            ),
        ),
    ),
    "form-file": (
        f"{URL} -F file=@s.png -F 'who=<who' -F 'x=@who;filename=w.bin;type=a/b' -F 'y=@who'",
        (
            "POST", URL, (PARTS,),
            parts(
                'Content-Disposition: form-data; name="file"; filename="s.png"\r\nContent-Type: image/png'
                "\r\n\r\n\x89PNG",
                'Content-Disposition: form-data; name="who"\r\n\r\nann lee',
                'Content-Disposition: form-data; name="x"; filename="w.bin"\r\nContent-Type: a/b'
                "\r\n\r\nann lee",
                'Content-Disposition: form-data; name="y"; filename="who"\r\n'
                "Content-Type: application/octet-stream\r\n\r\nann lee",
            ),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_a_command_line_is_the_call_that_curl_makes(name: str) -> None:
    """Method, address, headers and body."""
    words, expected = LINES[name]

    assert expected == read(f"curl {words}")


@pytest.mark.parametrize("text", ["$ curl https://a.b", " curl.exe https://a.b", "curl \\\n https://a.b"])
def test_the_program_may_be_written_in_several_ways(text: str) -> None:
    """With a prompt before it, with its ending, on a line of its own."""
    assert is_curl(text)
    assert ("GET", "https://a.b", (), b"") == read(text)


@pytest.mark.parametrize("text", ["curly", "wget x", "", "{}"])
def test_another_program_is_none(text: str) -> None:
    """Only the whole name counts."""
    assert not is_curl(text)


#: What follows ``curl`` -> what is wrong.
BAD = {
    "unknown": ("--upload sk-secret https://a", "the curl option --upload is not known here; leave it out"),
    "equals": ("--data=sk-secret https://a", "the curl option --data is not known here; leave it out"),
    "letter": ("-Tsk-secret https://a", "the curl option -T is not known here; leave it out"),
    "no-value": ("https://a -H", "the curl option -H has no value"),
    "no-value-long": ("https://a --json", "the curl option --json has no value"),
    "quote": ("https://a -d 'sk-secret", "the curl command line has a quote that does not end"),
    "nothing": ("-s", "the curl command line names no addresses, and one is due"),
    "two": ("https://a https://b", "the curl command line names 2 addresses, and one is due"),
    "bodies": ("https://a -d 1 --json 2", "the curl command line has bodies of two kinds; one is due"),
    "pipe": ("https://a -d @-", "the body of the curl command line comes from a pipe; write it to a file"),
    "header-file": ("https://a -H @h", "headers in a file are not read; write them out"),
    "field": ("https://a -F sk-secret", "a form field of the curl command line has no ="),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_one_sentence_without_a_value(name: str) -> None:
    """An option is named, its value never: it may be a key."""
    words, sentence = BAD[name]
    with pytest.raises(OptionError) as caught:
        read(f"curl {words}")

    assert sentence == str(caught.value)
