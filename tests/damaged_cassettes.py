"""Every row of the store contract's table of damage, as a file: what commands are held against."""

from __future__ import annotations

from httpx_cassette._line import tear_note

from ._recordings import line as bare_line
from .example_cassette import chat, chat_answer, example_lines, exchange_line, said

__all__ = ["DAMAGED", "ONE", "OTHER"]

ONE = example_lines()[0]
_TWO = example_lines()[1]

#: Another answer to the same call.
OTHER = exchange_line(
    "https://api.openai.com/v1/chat/completions",
    chat("gpt-5", "I was charged twice for order 1042, see the invoice."),
    chat_answer("gpt-5", said("Other"), "stop", (31, 2)),
    finish="stop",
)

#: What is in a file, by name.
DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "torn tail": ONE + b"\n" + _TWO[:200],
    "torn and noted": _TWO[:200] + b"\n" + tear_note(0, 200) + b"\n" + ONE + b"\n",
    "damaged": ONE + b"\n" + _TWO[:300] + b"\n" + ONE + b"\n",
    "edited": _TWO.replace(b"Complaint", b"Compliment") + b"\n" + ONE + b"\n",
    "zeros": ONE + b"\n" + b"\0" * 4096 + b"\n",
    "merge": ONE + b"\n<<<<<<< HEAD\n" + OTHER + b"\n=======\n",
    "crlf": ONE + b"\r\n" + _TWO + b"\r\n",
    "mark": b"\xef\xbb\xbf" + ONE + b"\n",
    "utf-16": ONE.decode().encode("utf-16"),
    "same twice": ONE + b"\n" + ONE + b"\n",
    "conflict": ONE + b"\n" + OTHER + b"\n",
    "newer": ONE.replace(b'{"v":1', b'{"v":9') + b"\n",
    "unknown kind": b'{"v":1,"note":"other"}\n' + ONE + b"\n",
    "other key version": bare_line("old", key_version=7) + b"\n" + ONE + b"\n",
    "no newline": ONE,
}
