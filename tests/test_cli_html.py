"""The page of ``compare``: nothing recorded is obeyed, nothing is loaded, whatever stands in it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from httpx_cassette.cli._page import Answer, page

from .injections import INJECTIONS

#: Tags of the page itself, with their attributes.
TAGS = {
    "html": {"lang"}, "head": set(), "meta": {"charset", "http-equiv", "content", "name"}, "title": set(),
    "style": set(), "body": set(), "h1": set(), "h2": set(), "section": set(), "pre": set(), "p": set(),
    "div": {"class"}, "article": set(), "b": set(), "small": set(),
}  # fmt: skip


class Read(HTMLParser):
    """What a browser makes of a page: its tags with their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.others: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Take a text."""
        self.texts.append(data)

    def _take_other(self, data: str) -> None:
        self.others.append(data)

    # Which of these takes what depends on the release of Python.
    handle_comment = unknown_decl = handle_pi = _take_other


def answers(text: str) -> Iterator[list[Answer]]:
    """Yield a group with a text everywhere."""
    exchange = {"fingerprint": text, "file": text, "line": 1, "at": text, "model": text}
    yield [
        Answer({text: text, "b": [text]}, text, exchange, text, 1, 2, 3, Decimal("0.5"), text),
        Answer({}, "", exchange, "", None, None, None, None, text),
    ]


def made(text: str) -> str:
    """Return a page that has a text everywhere."""
    return "".join(page(text, [text], answers(text)))


def test_there_are_fifty_injections() -> None:
    """Each is another one."""
    assert 50 == len(set(INJECTIONS)) == len(INJECTIONS)


@pytest.mark.parametrize("text", [*INJECTIONS, *(f"\ud800\x00\u202e{text}" for text in INJECTIONS[:3])])
def test_what_is_recorded_is_text(text: str) -> None:
    """The page has the tags and the attributes that it has with a harmless text, and shows the injection."""
    read, harmless = Read(made(text)), Read(made("a"))

    assert harmless.tags == read.tags
    assert [] == read.others
    assert text[-10:] in {each[-10:] for each in read.texts}


def test_what_is_neither_tag_nor_text_would_be_seen() -> None:
    """Comments, instructions and sections of XML."""
    assert 3 == len(Read("<!--a--><?b?><![CDATA[c]]>").others)


def test_the_page_has_no_way_out() -> None:
    """Of all tags and attributes that a browser loads or runs something for, there is none."""
    for tag, attributes in Read(made("a")).tags:
        assert tag in TAGS
        assert attributes.keys() <= TAGS[tag]


def test_a_policy_forbids_the_rest() -> None:
    """Nothing may be loaded or run, but for the one style of the page, which is named by its digest."""
    text = made("a")
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(each["content"] for tag, each in Read(text).tags if tag == "meta" and "http-equiv" in each)

    assert (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" + digest + "'" == policy
    )
    assert [] == re.findall(r"url\(|@import|expression", style)


def test_an_answer_is_shown_with_what_it_took() -> None:
    """Values, answer, figures, and where it stands; what is not known is left out."""
    exchange = {"fingerprint": "ab" * 32, "file": "a.jsonl", "line": 7, "at": "2026-11-29T12:00:00Z"}
    group = [
        Answer({"model": "gpt-5"}, "Why?", exchange, "stop", 1000, 2, 3, Decimal("0.0125"), "a\n<b>"),
        Answer({}, "Why?", exchange, "", None, None, None, None, ""),
    ]
    text = "".join(page("a.jsonl", ["model", "url"], [group]))
    where = "<p><small>abababababab  a.jsonl:7  2026-11-29T12:00:00Z</small></p></article>\n"

    assert (
        "<h1>a.jsonl by model, url</h1>\n"
        "<section>\n<h2>1</h2>\n<pre>Why?</pre>\n"
        '<div class="answers">\n'
        "<article><p><b>model</b></p><pre>gpt-5</pre><pre>a\n&lt;b&gt;</pre>"
        f"<p>finish stop, 1,000 tokens in, 2 out, 3 ms, $0.012500</p>{where}"
        f"<article><p>(absent)</p><pre></pre><p></p>{where}"
        "</div>\n</section>\n</body>\n</html>\n"
    ) == text[text.index("<h1>") :]
