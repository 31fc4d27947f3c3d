"""Where the cassette of a test lies, and what its file is called."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._errors import OptionError
from httpx_cassette.pytest_plugin._naming import Place, cassette_files, safe_name

NAMES = {"module": "test_chat", "class": "TestIt", "test": "test_it[a/b]"}
PLACE = Place(Path("/project/tests/api/test_chat.py"), Path("/project"), NAMES)

#: What test functions, parameters and people bring.
TEXTS = st.text() | st.text(alphabet="aB.- _/\\:con1¹é\u00a0\ud800", max_size=80)


def is_safe_on_windows(name: str) -> bool:
    """Tell whether Windows takes a name, and leaves it as it is: by its own rules."""
    device = re.fullmatch(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³])(\..*)?", name, re.IGNORECASE)
    return device is None and not re.search(r'[<>:"/\\|?*\x00-\x1f]|[. ]\Z', name) and name != ""


def digest(text: str) -> str:
    """Return what tells the names of texts apart that look alike once they are safe."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# -- safe_name -----------------------------------------------------------------------------------------


@given(TEXTS)
def test_a_safe_name_is_one_on_every_system(text: str) -> None:
    """Windows takes it as it is, no name is longer than 60 characters, and it can be encoded."""
    name = safe_name(text)

    assert is_safe_on_windows(name)
    assert 60 >= len(name)
    assert name == name.encode("utf-8").decode("utf-8")


@given(TEXTS, TEXTS)
def test_different_texts_have_different_names(one: str, other: str) -> None:
    """The same text has the same name each time, and another text another one."""
    assert safe_name(one) == safe_name(one)
    assert (one == other) == (safe_name(one) == safe_name(other))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("test_chat", "test_chat"),
        ("test_it[gpt-4o]", "test_it[gpt-4o]"),
        ("test_größe", "test_größe"),
        ("test_it[a/b]", "test_it[a-b]-{}"),
        ("test_it[a b]", "test_it[a-b]-{}"),
        ("test_it[../../etc]", "test_it[..-..-etc]-{}"),
        ("con", "_con-{}"),
        ("AUX.txt", "_AUX.txt-{}"),
        ("com¹", "_com¹-{}"),
        ("a.", "a-{}"),
        ("", "{}"),
        ("...", "{}"),
        ("x" * 51, "x" * 50 + "-{}"),
    ],
)
def test_a_safe_name_can_still_be_read(text: str, name: str) -> None:
    """What is safe stays; the rest is replaced by a dash, and told apart by a digest."""
    assert name.format(digest(text)) == safe_name(text)


# -- cassette_files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (None, "test_chat.jsonl"),
        ("triage", "triage.jsonl"),
        ("triage.jsonl", "triage.jsonl"),
        ("triage.v2", "triage.v2.jsonl"),
        ("triage/refunds", "triage/refunds.jsonl"),
        ("triage\\refunds", "triage/refunds.jsonl"),
        ("two words", "two words.jsonl"),
        ("{module}", "test_chat.jsonl"),
        ("{module}/{class}.{test}", "test_chat/TestIt.test_it[a-b]-{}.jsonl"),
    ],
)
def test_the_file_lies_beside_the_test(name: str | None, file: str) -> None:
    """It is in the folder ``cassettes`` beside the test, and called for the module unless it is named."""
    assert [Path("/project/tests/api/cassettes") / file.format(digest("test_it[a/b]"))] == cassette_files(
        name, PLACE, None
    )


def test_a_folder_of_ones_own_comes_second() -> None:
    """The cassette beside the test is looked up, and the one in the folder is written."""
    found = cassette_files(None, PLACE, Path("/elsewhere"))

    expected = ["/project/tests/api/cassettes/test_chat.jsonl", "/elsewhere/tests/api/test_chat.jsonl"]
    assert list(map(Path, expected)) == found


def test_tests_outside_of_the_project_have_a_folder_of_their_own() -> None:
    """Two folders outside of the root do not share files below a folder of one's own."""
    place = Place(Path("/other/test_chat.py"), Path("/project"), NAMES)

    (_, file) = cassette_files(None, place, Path("/elsewhere"))

    assert Path(f"/elsewhere/other-{digest('/other')}/test_chat.jsonl") == file


LEAVES = (
    "leaves the folder of the cassettes; name a file in it, such as 'triage' or 'triage/refunds', "
    "and another folder with --cassette-dir"
)
NO_NAME = (
    "is no file name on every system, because of {!r}; use letters, digits, '-' and '_', 200 bytes at most"
)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../triage", LEAVES),
        ("a/../../triage", LEAVES),
        ("..\\triage", LEAVES),
        ("/tmp/triage", LEAVES),
        ("C:\\triage", LEAVES),
        ("\\\\server\\triage", LEAVES),
        ("a//b", LEAVES),
        ("a/", LEAVES),
        ("./a", LEAVES),
        ("a?", NO_NAME.format("a?")),
        ("a\0b", NO_NAME.format("a\0b")),
        ("a/b:c", NO_NAME.format("b:c")),
        ("con", NO_NAME.format("con")),
        ("a/nul.jsonl", NO_NAME.format("nul.jsonl")),
        ("folder./a", NO_NAME.format("folder.")),
        ("folder /a", NO_NAME.format("folder ")),
        ("{module", NO_NAME.format("{module")),
        ("é" * 101, NO_NAME.format("é" * 101)),
        ("{modul}", "has {modul}, and a name may hold {module}, {class}, {test}"),
        ("", "names no file; write it like cassette('triage')"),
        (" ", "names no file; write it like cassette('triage')"),
        (7, "names no file; write it like cassette('triage')"),
        (Path("triage"), "names no file; write it like cassette('triage')"),
    ],
)
def test_a_name_that_is_none_is_refused(name: Any, reason: str) -> None:
    """What leaves the folder, or is no name on every system, is refused with the reason."""
    with pytest.raises(OptionError) as refused:
        cassette_files(name, PLACE, None)

    assert f"cassette({name!r}) {reason}" == refused.value.message
