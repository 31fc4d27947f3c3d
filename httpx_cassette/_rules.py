"""The rules of the key that change a document: join, ignore, strip, fold, rename.

A rule is given the paths or the table it works on; nothing here knows about HTTP, providers or files.
Every rule works in place on a document that the caller owns, and applied twice it changes nothing more,
but for ``remove_places`` with an index, which names another element then.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import cast

from ._call import Json
from ._parsing import is_same_json
from ._paths import Paths, Place

__all__ = [
    "fold_defaults",
    "has_text",
    "has_trailing_blanks",
    "is_blank",
    "join_pieces",
    "join_text",
    "remove_places",
    "rename_references",
    "single_text",
    "strip_lines",
    "strip_places",
]

# -- join ----------------------------------------------------------------------------------------------

#: The two halves of one character, which some servers send in two events.
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def join_text(pieces: list[str]) -> str:
    """Return pieces of a text as one, a character whole whose halves came in two of them."""
    text = "".join(pieces)
    if text.isascii() or _HALVES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def join_pieces(turns: list[Json], roles: Collection[str], parts: str, ends: Collection[str]) -> None:
    """Make one turn of turns that follow one another, and one part of texts that do; in place.

    Args:
        turns: The turns of a conversation.
        roles: The roles of those that may be pieces.
        parts: The member that lists the parts of a turn. A turn with others than this and ``role`` is whole.
        ends: Members of a part that end its text. Texts with other members are joined where these are equal.
    """
    kept: list[Json] = []
    pieces: list[dict[str, Json]] = []
    is_piece = False
    for turn in turns:
        was_piece, is_piece = is_piece, _is_piece(turn, roles, parts)
        if is_piece and was_piece:
            cast("list[Json]", pieces[-1][parts]).extend(cast("dict[str, list[Json]]", turn)[parts])
        else:
            kept.append(turn)
            if is_piece:
                pieces.append(cast("dict[str, Json]", turn))
    turns[:] = kept
    for piece in pieces:
        piece[parts] = _join_parts(cast("list[Json]", piece[parts]), ends)


def _is_piece(turn: Json, roles: Collection[str], parts: str) -> bool:
    if not isinstance(turn, dict) or len(turn) != 2:
        return False
    role = turn.get("role")
    return isinstance(role, str) and role in roles and isinstance(turn.get(parts), list)


def _join_parts(parts: list[Json], ends: Collection[str]) -> list[Json]:
    joined: list[Json] = []
    runs: list[tuple[dict[str, Json], list[str]]] = []
    rest: dict[str, Json] | None = None  # of a text that may go on
    for part in parts:
        if not isinstance(part, dict) or not isinstance(part.get("text"), str):
            rest = None
            joined.append(part)
            continue
        text = cast(str, part["text"])
        others = {name: value for name, value in part.items() if name != "text" and name not in ends}
        texts: list[str] = []
        if rest is not None and is_same_json(others, rest):
            _, texts = runs.pop()
            joined.pop()
        texts.append(text)
        runs.append((part, texts))
        joined.append(part)
        rest = others if len(others) + 1 == len(part) else None
    for part, texts in runs:
        part["text"] = join_text(texts)
    return joined


# -- ignore --------------------------------------------------------------------------------------------


def remove_places(document: Json, paths: Paths) -> None:
    """Remove what stands at the paths: members of objects, elements of lists."""
    # Two paths may name one place, and what comes after it would be removed in its stead.
    places = {(id(place[0]), place[1]): place for place in paths.places(document)}
    # Elements go from the back, so that an index still names its element when its turn comes.
    for container, step in sorted(places.values(), key=_index, reverse=True):
        del container[step]  # type: ignore[arg-type]  # the step is the container's


def _index(place: Place) -> int:
    return place[1] if isinstance(place[1], int) else -1


# -- strip ---------------------------------------------------------------------------------------------

_BLANKS = " \t\r"

# Only a newline cuts lines: U+00A0, U+2028, form feeds and the like are text. The newline stands first
# because ``re`` looks for a leading literal fast: a fifth of what three searches with ``in`` take.
_AFTER_BLANK = re.compile(r"\n(?<=[ \t\r]\n)")
_find = _AFTER_BLANK.search


def has_trailing_blanks(text: str) -> bool:
    """Tell whether spaces, tabs or CR stand before a newline or at the end."""
    return (text != "" and text[-1] in _BLANKS) or ("\n" in text and _find(text) is not None)


def strip_lines(text: str) -> str:
    """Return the text without spaces, tabs and CR before each newline and at its end."""
    if not has_trailing_blanks(text):
        return text
    return "\n".join([piece.rstrip(_BLANKS) for piece in _AFTER_BLANK.split(text)])


def strip_places(places: Iterable[Place]) -> None:
    """Strip the strings that stand at the places."""
    for container, step in places:
        text = container[step]  # type: ignore[index]  # the step is the container's
        if isinstance(text, str):
            container[step] = strip_lines(text)  # type: ignore[index]  # as above


#: Characters without a mark on paper that Unicode counts as letters, symbols or accents: Hangul fillers, the
#: blank Braille pattern, the joiner of graphemes and the selectors of variants.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(0xFE00 + n) for n in range(16)
}


def is_blank(text: str) -> bool:
    """Tell whether nothing visible stands in a text: white space and format characters do not count."""
    return not text.strip() or all(
        mark in _INVISIBLE or unicodedata.category(mark) in ("Cf", "Zs", "Cc", "Zl", "Zp") for mark in text
    )


def has_text(content: Json) -> bool:
    """Tell whether something visible stands in a text, or in the ``text`` of a part of a list."""
    if isinstance(content, str):
        return not is_blank(content)
    if isinstance(content, list):
        return any(isinstance(part, dict) and has_text(part.get("text")) for part in content)
    return False


# -- fold ----------------------------------------------------------------------------------------------


def fold_defaults(
    members: dict[str, Json],
    defaults: Mapping[str, Json],
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> list[str]:
    """Drop members that are equal to their documented default; return the names dropped."""
    dropped = [
        name
        for name, value in members.items()
        # ``==`` first, although it takes 1 for true: it is quick to say no.
        if name in defaults
        and value == defaults[name]
        and is_same_json(value, defaults[name])
        and is_wanted(name)
    ]
    for name in dropped:
        del members[name]
    return dropped


def single_text(value: Json, kind: str = "text") -> Json:
    """Return the text of a list that holds one text part and nothing else, or the value as it is."""
    if isinstance(value, list) and len(value) == 1:
        part = value[0]
        if isinstance(part, dict) and len(part) == 2 and part.get("type") == kind:
            text = part.get("text")
            return text if isinstance(text, str) else value
    return value


# -- rename --------------------------------------------------------------------------------------------


def rename_references(places: Iterable[Place], held: Collection[Json] = ()) -> None:
    """Rename the ids at the places to ``call_1``, ``call_2`` by first appearance; an empty id stays.

    Args:
        places: Where ids stand.
        held: Ids that name something outside the document: they stay too, and no other gets their name.
    """
    # Read before any is written: a place may come twice, and a new name may be another's old one.
    sent = [(container, step, container[step]) for container, step in places]  # type: ignore[index]  # its own
    names: dict[str, str] = {}
    new_names = (f"call_{number}" for number in count(1))
    for container, step, reference in sent:
        if isinstance(reference, str) and reference and reference not in held:
            if reference not in names:
                names[reference] = next(name for name in new_names if name not in held)
            container[step] = names[reference]  # type: ignore[index]  # as above
