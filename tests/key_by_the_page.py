"""The key, version 1, written a second time: from docs/key.md and docs/dialects.json alone.

``test_vectors.py`` holds it against every vector, so that the page is known to be enough for another
language. What is needed here, the page has to say. Of the package it uses nothing but ``Redaction.text`` and
``Redaction.url``: what a credential looks like is a table that the page only names.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import ipaddress
import json
import re
import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from httpx_cassette._redact import Redaction

from .json_by_the_page import (
    Json,
    Place,
    at,
    canonical,
    children,
    depth,
    digest,
    encode,
    objects,
    places_of,
    remove,
    same,
    texts,
    walk,
)

__all__ = ["fingerprint"]

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "key.md").read_text("utf-8")
DIALECTS: dict[str, dict[str, Any]] = json.loads((DOCS / "dialects.json").read_text("utf-8"))
MASKS = dict(re.findall(r"^(date|time|uuid|path|port)  (\S.*)$", PAGE, re.MULTILINE))

EMPTY: tuple[Json, ...] = (None, [], {})
MASKED = ("filename", "text")
LISTS = ("anthropic-beta", "openai-beta")
LOOKED_UP: dict[str, tuple[str, ...]] = {
    "item_reference": (),
    "web_search_call": (),
    "reasoning": ("encrypted_content", "content"),
    "image_generation_call": ("result",),
    "code_interpreter_call": ("outputs",),
    "file_search_call": ("results",),
}
SECRET_FIELDS = (
    "access_token api_key apikey client_assertion client_secret password private_key refresh_token secret_key"
).split()
TYPES: dict[str, type] = {"any": object, "list": list, "object": dict, "text": str}
RESERVED = re.compile(r"\$+(?:sha256|bytes)")


def fingerprint(call: dict[str, Any], options: dict[str, Any]) -> str:
    """Return the fingerprint of a vector's call under a vector's options."""
    policy, redaction = options.get("key_policy", {}), Redaction.of(options.get("redact"))
    sent = [(name.lower(), value) for name, value in call.get("headers", [])]
    content = base64.b64decode(call["body_b64"]) if "body_b64" in call else call.get("body", "").encode()
    url = redaction.url(call["url"])
    body = store_body(content, dict(sent), url, redaction) if content else {}
    files = options.get("prompt_files", {})
    document = {
        "method": call["method"],
        "url": key_url(url, policy),
        "headers": key_headers(sent, policy, redaction),
        "body": key_body(body, url, policy),
        "prompt_files": {name: digest(text.encode()) for name, text in files.items()},
        "extra": walk(policy.get("extra", {}), rename=lambda name: "$" * name.startswith("$") + name),
    }
    document = walk(document, lambda text, _: digest(text) if len(encode(text)) > 1024 else text)
    shown = {name: part for name, part in document.items() if part != {}}
    return hashlib.sha256(b"httpx-cassette key 1\n" + canonical(shown)).hexdigest()


# -- 1. from the call to the stored request ------------------------------------------------------------


def store_body(content: bytes, headers: dict[str, str], url: str, redaction: Redaction) -> dict[str, Json]:
    """Return the body as it is stored."""
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        windows = {"gzip": [31], "x-gzip": [31], "deflate": [15, -15]}.get(encoding, [])
        decoded = [data for window in windows if (data := inflate(content, window)) is not None]
        if not decoded:
            return {"bytes": digest(content), "encoding": encoding}
        content = decoded[0]
    kind, value = read_body(content, headers.get("content-type", ""))
    if kind == "json":
        return {kind: store_json(value, dialect_of(url, value)[1], redaction)}
    if kind == "form":
        value = [pair for pair in value if pair[0].lower() not in SECRET_FIELDS]
    if kind != "bytes":
        value = walk(value, lambda text, place: text if place[-1:] == ("$sha256",) else redaction.text(text))
    for part in value if kind == "parts" else ():
        if "text" in part and ("filename" in part or len(part["text"]) > 1024):
            part["bytes"] = digest(part.pop("text"))
    return {kind: value}


def inflate(content: bytes, window: int) -> bytes | None:
    """Return what was compressed, in one member or several, unless there is anything else."""
    data = b""
    while content:
        reader = zlib.decompressobj(window)
        try:
            data += reader.decompress(content, (256 << 20) - len(data) + 1)
        except zlib.error:
            return None
        if not reader.eof or len(data) > 256 << 20:
            return None
        content = reader.unused_data
    return data


def read_body(content: bytes, content_type: str) -> tuple[str, Json]:
    """Return the first kind that fits, and the body read as that."""
    kind = content_type.lower()
    try:
        if "json" in kind or (not kind and content[:64].lstrip()[:1] in (b"{", b"[")):
            return "json", read_json(content)
        if kind.startswith("application/x-www-form-urlencoded"):
            return "form", pairs_of(content.decode("utf-8", "surrogateescape"))
        if kind.startswith("multipart/"):
            return "parts", read_parts(content, content_type)
    except (ValueError, RecursionError):
        pass
    try:
        return "text", content.decode()
    except ValueError:
        return "bytes", digest(content)


def read_json(content: bytes) -> Json:
    """Return a JSON document without a loss; a ValueError says that it is none."""

    def number(text: str) -> int | float:
        value = (
            float(text)
            if re.search("[.eE]", text)
            else int(text)
            if len(text.lstrip("-")) <= 1000
            else float("inf")
        )
        if value in (float("inf"), -float("inf")):
            raise ValueError(text)
        return value

    value = json.loads(content.decode(), parse_int=number, parse_float=number, parse_constant=int)
    if depth(value) > 100:
        raise ValueError("nested too deep")
    return value


def pairs_of(text: str) -> list[list[str]]:
    """Return the pairs of a form or a query."""
    return [list(pair) for pair in parse_qsl(text, keep_blank_values=True, errors="surrogateescape")]


def read_parts(content: bytes, content_type: str) -> list[dict[str, Json]]:
    """Return the parts of a multipart body; a ValueError says that it cannot be taken apart."""
    found = re.search(r';\s*boundary=(?:"([^"]+)"|([^\s";,]+))', content_type, re.IGNORECASE)
    if found is None:
        raise ValueError("no boundary")
    first, *pieces = (b"\r\n" + content).split(b"\r\n--" + (found[1] or found[2]).encode("latin-1"))
    if first or not pieces or pieces.pop() not in (b"--", b"--\r\n"):
        raise ValueError("not closed")
    return list(map(read_part, pieces))


def read_part(piece: bytes) -> dict[str, Json]:
    """Return what stands between two delimiters."""
    head, blank_line, content = piece.partition(b"\r\n\r\n")
    first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
    if first or not blank_line:
        raise ValueError("no part")
    part: dict[str, Json] = {}
    others = []
    for name, _, value in (line.partition(":") for line in lines):
        name, value = name.strip().lower(), value.strip()
        found = re.fullmatch(r'form-data; name="([^"\\]*)"(?:; filename="([^"\\]*)")?', value)
        if name == "content-disposition" and found and "name" not in part:
            part |= {"name": found[1]} if found[2] is None else {"name": found[1], "filename": found[2]}
        elif name == "content-type" and "type" not in part:
            part["type"] = value
        else:
            others.append([name, value])
    part |= {"headers": others} if others else {}
    try:
        return part | {"text": content.decode()}
    except ValueError:
        return part | {"bytes": digest(content)}


def store_json(body: Json, table: dict[str, Any], redaction: Redaction) -> Json:
    """Return a JSON body as it is stored."""
    if "pieces" in table:
        join(body, **table["pieces"])
    remove(body, places_of(body, table.get("credentials", [])))
    opaque = places_of(body, table.get("opaque", []))
    body = walk(body, lambda text, at: text if at in opaque else redaction.text(text), redaction.text)
    body = walk(body, rename=lambda name: "$" * bool(RESERVED.fullmatch(name)) + name)
    media = places_of(body, table.get("media", []))

    def is_media(text: str, place: Place) -> bool:
        return place in media or (text.startswith("data:") and ";base64," in text[:256])

    return walk(body, lambda text, at: digest(text) if len(text) > 1024 and is_media(text, at) else text)


def join(body: Json, turns: str, roles: list[str], parts: str, ends: list[str]) -> None:
    """Join turns that follow one another, and the texts in them."""
    joined: list[Json] = []
    for turn in body[turns] if isinstance(body[turns], list) else []:
        last: Json = joined[-1] if joined else None
        if is_piece(turn, roles, parts) and is_piece(last, roles, parts):
            last[parts] += turn[parts]
        else:
            joined.append(turn)
    for turn in joined:
        if is_piece(turn, roles, parts):
            turn[parts] = join_texts(turn[parts], ends)
    body[turns] = joined or body[turns]


def is_piece(turn: Json, roles: list[str], parts: str) -> bool:
    """Say whether a turn may be one of several that were one."""
    fits = isinstance(turn, dict) and set(turn) == {"role", parts}
    return fits and turn["role"] in roles and isinstance(turn[parts], list)


def join_texts(parts: list[Json], ends: list[str]) -> list[Json]:
    """Return the parts with texts that follow one another as one, up to a member that ends a text."""
    joined: list[Json] = []
    for part in parts:
        last: Json = joined[-1] if joined else None
        if texts([last], "text") and texts([part], "text"):
            others = {name: value for name, value in part.items() if name not in ends}
            if same({**others, "text": last["text"]}, last):
                text = (last["text"] + part["text"]).encode("utf-16", "surrogatepass")
                joined[-1] = {**part, "text": text.decode("utf-16", "surrogatepass")}
                continue
        joined.append(part)
    return joined


# -- 2. from the stored request to the key document ----------------------------------------------------


def key_url(url: str, policy: dict[str, Any]) -> str:
    """Return the URL in the one spelling that the key knows."""
    split = urlsplit(url)
    pairs = sorted(pairs_of(split.query), key=lambda pair: pair[0])
    query = "&".join("=".join(quote(text, "", "utf-8", "surrogateescape") for text in pair) for pair in pairs)
    host = split.netloc.lower().removesuffix({"http": ":80", "https": ":443"}.get(split.scheme, "\n"))
    origin = f"{split.scheme}://{host}" if policy.get("host", True) else ""
    return origin + (split.path or "/") + ("?" + query if query else "")


def key_headers(sent: list[tuple[str, str]], policy: dict[str, Any], redaction: Redaction) -> dict[str, Json]:
    """Return the headers that have a part in the key."""
    found: dict[str, Json] = {}
    for name in {*LISTS, *map(str.lower, policy.get("headers", []))}:
        values = [value for other, value in sent if other == name]
        text = redaction.text(", ".join(values))
        value = sorted(filter(None, map(str.strip, text.split(",")))) if name in LISTS else text
        found |= {name: value} if values and value != [] else {}
    return found


def key_body(body: dict[str, Json], url: str, policy: dict[str, Any]) -> dict[str, Json]:
    """Return the body after the rules."""
    mask = Masks(policy.get("masks", [])).apply
    if "json" in body:
        return {"json": key_json(copy.deepcopy(body["json"]), url, policy, mask)}
    if "form" in body:
        pairs = sorted(body["form"], key=lambda pair: pair[0])
        return {"form": [[name, mask(text, ())] for name, text in pairs]}
    if "parts" in body:
        return {"parts": walk(body["parts"], lambda text, at: mask(text, at) if at[1] in MASKED else text)}
    return {"text": mask(body["text"], ())} if "text" in body else body


def key_json(body: Json, url: str, policy: dict[str, Any], mask: Callable[[str, Place], str]) -> Json:
    """Return a JSON body after the rules, in their order."""
    dialect, table = dialect_of(url, body)
    remove(body, places_of(body, policy.get("ignore", [])))
    if policy.get("strip", True):
        strip(body, table)
    body = walk(body, mask)
    if (own := policy.get("defaults")) is not False:
        keeps = not policy.get("host", True) or decides_sampling(dialect, urlsplit(url).hostname or "")
        fold(body, table, own, table.get("sampling", []) if keeps else [])
    references = table.get("references", [])
    held = held_by_the_server(body) if dialect == "openai-responses" else set()
    if dialect in ("anthropic-messages", "gemini", "gemini-interactions"):
        held = answered_alone(body, references)
    rename(body, places_of(body, references), held)
    return walk(body, rename=lambda name: "$" * (name[:1] == "$" and not RESERVED.fullmatch(name)) + name)


def strip(body: Json, table: dict[str, Any]) -> None:
    """Remove blanks at the ends of lines in conversational text."""
    prefills = [
        (turns, len(value) - 1)
        for turns in table.get("turns", [])
        if (value := children(body).get(turns)) and isinstance(value, list) and isinstance(value[-1], dict)
        if value[-1].get("role") in table["prefill_roles"]
    ]
    for place in places_of(body, table.get("text", []), table.get("closed", [])):
        holder, text = at(body, place[:-1]), at(body, place)
        is_signed = any(name in holder for name in table.get("signed", []))
        if isinstance(text, str) and place[:2] not in prefills and not is_signed:
            holder[place[-1]] = re.sub(r"[ \t\r]+(?=\n|\Z)", "", text)


class Masks:
    """The masks of a policy, and what was given a number so far."""

    def __init__(self, masks: Any) -> None:
        own = masks if isinstance(masks, dict) else dict.fromkeys(masks)
        self.patterns = {name: re.compile(pattern or MASKS[name]) for name, pattern in own.items()}
        self.numbers: dict[str, dict[str, str]] = {name: {} for name in own}
        words = "|".join(name if name in ("date", "time") else rf"{name}:\d+" for name in own) or "(?!)"
        self.literal = re.compile(rf"<((?:literal:)*(?:{words})>)")
        self.atom = re.compile(
            rf"(<redacted:[a-z][a-z0-9-]{{0,31}}:[0-9a-f]{{16}}>|<(?:literal:)*(?:{words})>)"
        )

    def apply(self, text: str, place: Place) -> str:
        """Return a text with its matches masked; the hash of a digest is none."""
        if place[-1:] == ("$sha256",):
            return text
        text = self.literal.sub(r"<literal:\1", text)
        for name in self.patterns:
            pieces = self.atom.split(text)  # Every second one is a placeholder.
            text = "".join(piece if n % 2 else self.replace(name, piece) for n, piece in enumerate(pieces))
        return text

    def replace(self, name: str, text: str) -> str:
        """Return a text without placeholders with the matches of one mask replaced."""

        def word(found: re.Match[str]) -> str:
            if name in ("date", "time") or not found[0]:
                return f"<{name}>" if found[0] else ""
            numbers = self.numbers[name]
            return numbers.setdefault(found[0], f"<{name}:{len(numbers) + 1}>")

        return self.patterns[name].sub(word, text)


def fold(body: Json, table: dict[str, Any], own: dict[str, Json] | None, kept: list[str]) -> None:
    """Drop what is documented as saying nothing."""
    for paths, nothing in (("null_below", (None,)), ("empty_below", EMPTY)):
        remove(body, [place for place in places_of(body, table.get(paths, [])) if at(body, place) in nothing])
    for below in table.get("below", []) if own is None else []:
        for place in places_of(body, below["paths"]):
            drop(at(body, place), below["defaults"])
    for place in places_of(body, table.get("single_text", [])):
        for text in texts(value := at(body, place), "text"):
            if value == [{"type": table["text_part"], "text": text}]:
                at(body, place[:-1])[place[-1]] = text
    for names, nothing in (("null", (None,)), ("empty", EMPTY)):
        remove(body, [place for place in places_of(body, table.get(names, [])) if at(body, place) in nothing])
    needs = table.get("only_with", {})
    documented = table.get("defaults", {})
    holds = {
        name: value
        for name, value in documented.items()
        if name not in kept and needs.get(name, name) in body
    }
    drop(body, holds if own is None else own)


def drop(value: Json, defaults: dict[str, Json]) -> None:
    """Drop members of an object that equal their default."""
    for name in defaults if isinstance(value, dict) else ():
        if name in value and same(value[name], defaults[name]):
            del value[name]


OWN_NETWORKS = (
    "10.0.0.0/8 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 ::1/128 fc00::/7 fe80::/10"
).split()


def decides_sampling(dialect: str, host: str) -> bool:
    """Say whether a host is one that decides about sampling itself."""
    if dialect == "openai-completions":
        return not host.endswith((".openai.com", ".openai.azure.com", ".cognitiveservices.azure.com"))
    named = "api.perplexity.ai", "api.mistral.ai", "router.huggingface.co"
    if host in ("localhost", "host.docker.internal") or host.endswith((".local", ".internal", ".lan")):
        return True
    if host == "openrouter.ai" and dialect not in ("cohere", "cohere-v1"):
        return True
    if host in named and dialect in ("openai-chat", "openai-responses"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(network) for network in OWN_NETWORKS)


def rename(body: Json, places: list[Place], held: set[str]) -> None:
    """Replace ids by names in the order in which they first appear."""
    names: dict[str, str] = {}
    free = (name for number in count(1) if (name := f"call_{number}") not in held)
    for place in places:
        value = at(body, place)
        if isinstance(value, str) and value and value not in held:
            names[value] = names.get(value) or next(free)
            at(body, place[:-1])[place[-1]] = names[value]


ANSWERS = (
    "tool_use_id",
    "caller.tool_id",
    "functionResponse.id",
    "function_response.id",
    "codeExecutionResult.id",
    "code_execution_result.id",
    "toolResponse.id",
    "tool_response.id",
    "call_id",
)


def answered_alone(body: Json, references: list[str]) -> set[str]:
    """Return the ids that are answered in a body and belong to no call in it."""
    answers = [path for path in references if path.endswith(ANSWERS)]
    calls = [path for path in references if path not in answers]
    named, asked = (
        {value for place in places_of(body, paths) if isinstance(value := at(body, place), str)}
        for paths in (answers, calls)
    )
    return named - asked


def held_by_the_server(body: Json) -> set[str]:
    """Return the ids of Responses that name what only the server has."""
    held: set[str] = set()
    called: set[str] = set()
    answered: set[str] = set()
    for item in objects(body.get("input")):
        kind = item.get("type") or ("item_reference" if item.get("id") and not item.get("role") else "")
        ids = texts([item], "id", "call_id")
        if kind in LOOKED_UP and not any(map(item.get, LOOKED_UP[kind])):
            held |= ids
        elif kind.endswith("_output"):
            answered |= texts([item], "call_id", *(["id"] if kind == "local_shell_call_output" else []))
        else:
            called |= ids
        called |= texts(item.get("pending_safety_checks"), "id")
        answered |= texts([item], "approval_request_id") | texts([item.get("caller")], "caller_id")
        answered |= texts(item.get("acknowledged_safety_checks"), "id")
    return held | (answered - called)


# -- 4. dialects ---------------------------------------------------------------------------------------


def dialect_of(url: str, body: Json) -> tuple[str, dict[str, Any]]:
    """Return the first dialect that has an endpoint for a call, and its table."""
    for name, table in DIALECTS.items():
        if any(fits(endpoint, urlsplit(url).path, body) for endpoint in table.get("endpoints", [])):
            return name, table
    return "generic", DIALECTS["generic"]


def fits(endpoint: dict[str, Any], path: str, body: Json) -> bool:
    """Say whether a call is one to an endpoint."""

    def has(member: tuple[str, str]) -> bool:
        kinds = tuple(TYPES[kind] for kind in member[1].split(" or "))
        return member[0] in body and isinstance(body[member[0]], kinds)

    if not isinstance(body, dict) or not endpoint.get("has_body", True):
        return False  # No rule of the key asks which dialect a call without a body speaks.
    one, ends = endpoint["has_one"].items(), re.search(rf"(?:{endpoint['path']})\Z", path)
    return bool(ends) and all(map(has, endpoint["has"].items())) and (not one or any(map(has, one)))
