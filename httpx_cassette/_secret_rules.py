"""The table of credential shapes: what a secret looks like, and how a text is told to be worth a look.

Each strong rule is a literal that stands before the random characters of a credential, what must follow it,
and a check on what was found.
The rules of this file:

- *A literal first.* One pass over a text finds every literal of the table, and only the rules whose
  literal occurs, followed by enough characters of its alphabet, are run at all.
- *One way to match, then a check in Python.* Most patterns are one greedy run of one alphabet. Where a
  group is repeated, its alternatives begin with different characters, and what follows it begins with
  another one or stands within a bounded distance, so that no input takes more than linear time. What a
  lookahead would have to search for (a digit, the dots of a token) is checked on the run that was found.
- *An edge that bears escapes, and is marked.* No letter or digit stands before a credential, except where
  that letter ends an escape: the arguments of a tool call are JSON inside a string, where a line break is a
  backslash and an ``n``. Edges can be taken out of a pattern, for credentials that are glued together.
- *Percent-encoded as well*: a prompt may hold a URL, and a URL's own parts write ``/``, ``+``, ``=`` and
  ``:`` as escapes.
- *A missed key is worse than a redacted word*, so where a prefix is unmistakable nothing else is asked.

Sources: the providers' own pages where they print a key, and the rule sets of gitleaks (gitleaks.toml,
8.30), GitHub secret scanning's list of partners and microsoft/security-utilities for the lengths.
Patterns are text and the table is built at first use: importing this must cost next to nothing.
Of JSON and URLs a pattern knows how they write a character. Nothing here takes a document or a URL apart, or
knows what becomes of what is found.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

__all__ = ["WEAK_RULES", "Rule", "WeakRule", "key_material", "strong_rules", "without_edges"]

#: Gets what a pattern found and returns the part of its head that is the secret, or ``None``.
Accept = Callable[[str], "str | None"]


class Rule(NamedTuple):
    """One credential shape.

    Args:
        kind: The name that a placeholder carries.
        literal: What is in every text that has it, letter by letter: its head, or the end of that.
        pattern: The regular expression; a group named ``secret`` is what is replaced, else all of it.
        tail: A bytes expression for what follows the literal in JSON text; looser than the pattern.
        accept: The check on what the pattern found.
    """

    kind: str
    literal: str
    pattern: str
    tail: str
    accept: Accept | None = None


class WeakRule(NamedTuple):
    """A shape whose values can be guessed, and are therefore digested with a secret key only."""

    pattern: str
    accept: Accept | None = None


_EDGE, _EDGE_END = "(?#edge)", "(?#/edge)"


def _marked(expression: str) -> str:
    """Return the expression for an edge, between comments by which ``without_edges`` finds it."""
    return f"{_EDGE}{expression}{_EDGE_END}"


def without_edges(pattern: str) -> str:
    """Return a pattern that no longer asks what stands before and behind what it finds."""
    return re.sub(rf"{re.escape(_EDGE)}.*?{re.escape(_EDGE_END)}", "", pattern)


#: What may end with a letter or a digit and is no word: escapes of JSON and of URLs, and those that colour a
#: terminal, erase its line or move its cursor (``ESC[01;31m``, ``ESC[K``, which ``grep --color`` writes).
_ESCAPES_BEFORE = (
    r"\\[bfnrt]",
    r"\\u[0-9A-Fa-f]{4}",
    r"\\x[0-9A-Fa-f]{2}",
    r"%[0-9A-Fa-f]{2}",
    r"%5[Cc][bfnrt]",
    r"[0-9;\[][A-DGHJKhlm]",
    r"%5[Bb][A-DGHJKhlm]",
)


def _not_behind(letters: str, text: str = "") -> str:
    """Return the edge that none of the letters stands before, escapes borne; looked for behind a text."""
    before = [f"(?<!{letters}{text})", *(f"(?<={escape}{text})" for escape in _ESCAPES_BEFORE)]
    return _marked(f"(?:{'|'.join(before)})")


def _bounded(literal: str) -> str:
    """Return the expression for a literal with no letter or digit before it, escapes borne.

    The literal stands first and the edge is looked up behind it, because ``re`` searches for a
    leading literal fast and for a leading assertion slowly.
    """
    text = re.escape(literal)
    return text + _not_behind("[A-Za-z0-9]", text)


#: No letter or digit behind what has a length of its own.
_END = _marked("(?![A-Za-z0-9])")


def _both_cases(literal: str) -> tuple[str, str]:
    """Return a literal with its percent escapes in either of their spellings."""
    return literal, re.sub("%..", lambda escape: escape[0].lower(), literal)


def _run(
    kind: str, literals: str, alphabet: str, least: int, *, exact: bool = False, accept: Accept | None = None
) -> Iterator[Rule]:
    """Yield the rules for literals that are followed by a run of one alphabet."""
    length = f"{{{least}}}{_END}" if exact else f"{{{least},}}"
    for literal in literals.split():
        tail = rf"[{alphabet}\\{_ESCAPES if '/' in alphabet else ''}]{{{least}}}"
        yield Rule(kind, literal, f"{_bounded(literal)}{_letter(alphabet)}{length}", tail, accept)


def _letter(alphabet: str) -> str:
    """Return the expression for one letter of an alphabet, percent-encoded where a URL would write it so."""
    return rf"(?:[{alphabet}]|%2[BbFf]|%3[Dd])" if "/" in alphabet else f"[{alphabet}]"


def _after(kind: str, literals: tuple[str, ...], least: int, alphabet: str, accept: Accept) -> Iterator[Rule]:
    """Yield the rules for literals that introduce a credential and are no part of it."""
    for literal in literals:
        pattern = f"{_bounded(literal)}(?P<secret>{_letter(alphabet)}{{{least},}})"
        yield Rule(kind, literal, pattern, rf"[{alphabet}\\{_ESCAPES}]{{{least}}}", accept)


_ALNUM = "A-Za-z0-9"
_WORD = "A-Za-z0-9_"
#: The hyphen first, so that more can be added behind.
_URLSAFE = "-A-Za-z0-9_"
_BASE64 = "A-Za-z0-9+/="
_HEX = "0-9a-f"
#: What an escape of a URL begins with; the letters behind it are in every alphabet with a slash.
_ESCAPES = "%"

#: Gson writes an equals sign as an escape, which stays one where its JSON is quoted in a text.
_GSON_EQUALS = ("u003d", "u003D")
_JSON_EQUALS = r"(?:=|(?:\\|%5[Cc])+u003[Dd])"
_EQUALS = rf"(?:{_JSON_EQUALS}|%3[Dd])"

_LONG_RUN = r"[A-Za-z0-9]{16,}"
_DIGIT = r"[0-9]"


def _has_all_three(value: str) -> bool:
    return value.lower() != value != value.upper() and re.search(_DIGIT, value) is not None


def _if_mixed(value: str) -> str | None:
    """Accept a run of lower and upper case and digits: what random keys have and words do not."""
    return value if _has_all_three(value) else None


#: Families of ``sk-`` keys that name themselves, so that a digit is enough.
#: The groups of langfuse's and helicone's keys are shorter than any long run.
_SK_FAMILY = r"sk-(?:proj|svcacct|service|admin|None|or-v1|lf|helicone|litellm|kimi|cp|sp)-"


def _if_sk_key(value: str) -> str | None:
    """Tell ``sk-`` keys from words: ``sk-learn``, and the ``sk-estimator-id-1`` of scikit-learn's HTML.

    Litellm's virtual keys are 22 characters of base64url, OpenAI's first ones 48 letters and digits,
    DeepSeek's 32 hex digits.
    """
    if value.startswith("sk-SK-"):  # Slovak as spoken in Slovakia: a voice, sk-SK-Chirp3-HD-Achernar.
        return None
    if re.match(_SK_FAMILY, value):
        return value if re.search(_DIGIT, value[10:]) else None
    if _has_all_three(value[3:]):
        return value
    long_runs = re.findall(_LONG_RUN, value)
    return value if any(re.search(_DIGIT, run) for run in long_runs) else None


def _if_token(value: str) -> str | None:
    """Accept what follows ``Bearer`` unless it is words; a full stop at its end is the sentence's."""
    token = value.rstrip(".")
    if len(token) < 16:
        return None
    return token if _has_all_three(token) or len(re.findall(_DIGIT, token)) >= 4 else None


def _if_basic(value: str) -> str | None:
    """Accept base64 of ``user:password``; "Basic responsibilities" is base64 by its alphabet alone."""
    token = unquote(value).rstrip("=")
    try:
        decoded = base64.b64decode(token + "=" * (-len(token) % 4), validate=True)
    except binascii.Error:
        return None
    return value if b":" in decoded and decoded.isascii() and decoded.decode().isprintable() else None


def _if_jwt(value: str) -> str | None:
    """Accept three or five parts, the second of them empty in encrypted tokens (RFC 7519, RFC 7516)."""
    token = value.rstrip(".")
    parts = token.split(".")
    if len(parts) < 2 or len(parts[0]) < 12:
        return None
    long_parts = sum(len(part) >= 10 for part in parts[1:])
    signed = len(parts[1]) >= 10 and (long_parts >= 2 or value == token + ".")
    return token if signed or long_parts >= 3 else None


#: What documentation writes where a password would stand: stars, ``$NAME`` and ``$name``, ``{name}``, ``%s``.
#: A password may begin with a dollar as well.
_TEMPLATE = r"[*xX.]+|\$(?:[A-Z][A-Z0-9_]*|[a-z_]+|[0-9])|\$?\{+[^{}]*\}+|%s|\[[^\]]*\]"


#: A port that something follows: in ``http://build:8080,joe@example.com`` there is no password.
_PORT = r"[0-9]{2,5}[,;|&()\[\]{}]"


def _if_userinfo(value: str) -> str | None:
    password = unquote("".join(re.split(":|%3[Aa]", value, maxsplit=1)[1:]))
    return None if re.fullmatch(_TEMPLATE, password) or re.match(_PORT, password) else value


#: The blank of a PEM line, as it is, as a URL writes it, and as a form does.
_PEM_BLANK = r"(?: |%20|\+)"
_PEM_NAME = r"(?:[A-Z0-9 +]|%20){0,40}"
_PEM_END = rf"-----END{_PEM_NAME}-----\Z"
_PEM_HEAD = rf"-----BEGIN{_PEM_NAME}-----"
_PEM_GAP = r"\s+|\\+[nrt]"
_PEM_LINE = r"(?:\s|\\[nrt]|\\(?![nrt/])|%0[AaDd])*(?:[A-Za-z0-9+/=]|\\/|%2[BbFf]|%3[Dd]){32,}"
_BASE64_ONLY = r"[A-Za-z0-9+/=]+"


def key_material(block: str) -> str:
    """Return what a private key block says, for its digest.

    The same key with CRLF, LF, spaces or escaped line breaks, or within JSON that escapes its slashes,
    gives the same text.
    """
    body = re.sub(_PEM_END, "", re.sub(_PEM_HEAD, "", block, count=1)).replace("\\/", "/")
    body = re.sub(r"(?:Proc-Type|DEK-Info): [A-Za-z0-9,-]*", "", body)
    pieces = filter(None, re.split(_PEM_GAP, body))
    # What is no base64 is somebody's text between the two lines: it must not vanish from the key.
    return "".join(piece if re.fullmatch(_BASE64_ONLY, piece) else f"\0{piece}\0" for piece in pieces)


def _if_private_key(value: str) -> str | None:
    """Accept a block with a key in it; of one cut off before its end, the full lines."""
    if not re.search(_PEM_END, value):
        head = re.match(_PEM_HEAD, value)
        assert head is not None, "the pattern begins with it"
        stop = head.end()
        while (line := re.compile(_PEM_LINE).match(value, stop)) is not None:
            stop = line.end()
        value = value[:stop]
    # For this look only: a digest of what is decoded would make two texts one.
    plain = unquote(value) if "%" in value else value
    # "..." between the two lines is documentation; the shortest key (Ed25519, PKCS 8) has 64 characters.
    return value if len(re.sub("\0[^\0]*\0", "", key_material(plain))) >= 32 else None


_USERINFO = r"""[^\s/?#@:"'`<>\\]{0,256}:[^\s/?#"'`<>\\]{1,256}|[A-Za-z0-9_-]{20,256}"""
#: In JSON bytes a password may hold escapes, which the pattern sees undone.
_USERINFO_TAIL = r"""\\{0,4}/?(?:[^\s/?#@:"'`<>\\]{0,256}:[^\s/?#"'`<>]{1,256}|[A-Za-z0-9_-]{20,256})@"""
_SLASH = r"(?:\\{0,4}/|(?:%5[Cc]){0,4}%2[Ff])"
#: What stands behind the at sign where a tag of a repository is meant, and no host: ``@v1.2.3``.
_NO_TAG = r"(?!v[0-9]+(?:\.[0-9]+)+(?!\.?\w))"
#: The same in a URL that is part of another: what encodes a part leaves these as they are (JavaScript's
#: ``encodeURIComponent`` the most of them), so that a plain ``&`` ends it. The escapes are of what a userinfo
#: does not hold: blanks, quotes, brackets, slashes and what begins another part.
_UNRESERVED = "A-Za-z0-9._~!*()-"
_NO_ESCAPE_OF = "0[9AaDd]|2[0237Ff]|3[CcEeFf]|5[Cc]|60"
_ENCODED_USER = rf"(?:[{_UNRESERVED}]|%(?!{_NO_ESCAPE_OF}|3[Aa]|40)[0-9A-Fa-f]{{2}})"
_ENCODED_PASSWORD = rf"(?:[{_UNRESERVED}]|%(?!{_NO_ESCAPE_OF})[0-9A-Fa-f]{{2}})"
_ENCODED_USERINFO = rf"{_ENCODED_USER}{{0,256}}%3[Aa]{_ENCODED_PASSWORD}{{1,256}}|[A-Za-z0-9_-]{{20,256}}"


def _table() -> Iterator[Rule]:
    """Yield every strong rule, in the order in which they are run: what names its owner comes first."""
    yield Rule(
        "private-key",
        "-----BEGIN",
        rf"-----BEGIN{_PEM_NAME}PRIVATE{_PEM_BLANK}KEY(?:{_PEM_BLANK}BLOCK)?-----"
        rf"[^-]*(?:-(?!----)[^-]*){{0,40}}(?:-----END{_PEM_NAME}-----)?",
        rf"{_PEM_NAME}PRIVATE{_PEM_BLANK}KEY",
        _if_private_key,
    )
    yield from _run("age-key", "AGE-SECRET-KEY-1", "A-Z0-9", 50)

    # Model providers and the tools round them.
    yield from _run("anthropic-key", "sk-ant-", _URLSAFE, 20)
    yield from _run("openai-key", "sk-", _URLSAFE, 16, accept=_if_sk_key)
    yield from _run("google-key", "AIza", _URLSAFE, 35, exact=True)
    yield from _run("google-key", "AQ.Ab", _URLSAFE, 30)
    yield from _run("google-token", "ya29.", f"{_URLSAFE}.", 20, accept=lambda value: value.rstrip("."))
    for literal in ("1//0", r"\/0", *_both_cases("%2F0")):
        pattern = f"{_bounded('1')}{_SLASH}{_SLASH}0[{_URLSAFE}]{{40,}}"
        yield Rule("google-token", literal, pattern, f"[{_URLSAFE}]{{40}}")
    yield from _run("google-secret", "GOCSPX-", _URLSAFE, 28)
    yield from _run("hf-token", "hf_ api_org_", _ALNUM, 30)
    yield from _run("groq-key", "gsk_", _ALNUM, 40)
    yield from _run("xai-key", "xai-", _ALNUM, 40)
    yield from _run("perplexity-key", "pplx-", _ALNUM, 40)
    yield from _run("replicate-key", "r8_", _ALNUM, 37, exact=True)
    yield from _run("fireworks-key", "fw_", _ALNUM, 20, accept=_if_mixed)
    yield from _run("cerebras-key", "csk-", "a-z0-9", 40)
    yield from _run("together-key", "tgp_v1_", _URLSAFE, 40)
    yield from _run("nvidia-key", "nvapi-", _URLSAFE, 60)
    yield from _run("databricks-key", "dapi", _HEX, 32, exact=True)
    yield from _run("langsmith-key", "lsv2_pt_ lsv2_sk_", f"{_HEX}_", 40)
    yield from _run("voyage-key", "pa-", _URLSAFE, 43, exact=True, accept=_if_mixed)
    yield from _run("jina-key", "jina_", _URLSAFE, 60)
    yield from _run("tavily-key", "tvly-", _URLSAFE, 24)
    yield from _run("firecrawl-key", "fc-", _HEX, 32, exact=True)
    yield from _run("elevenlabs-key", "sk_", _HEX, 48, exact=True)
    yield from _run("pinecone-key", "pcsk_", _WORD, 40)
    yield from _run("e2b-key", "e2b_", _HEX, 40, exact=True)
    yield from _run("anyscale-key", "esecret_", "a-z0-9", 20)
    yield from _run("vercel-key", "vck_", _ALNUM, 40)
    yield Rule(
        "qianfan-key",
        "ALTAK-",
        rf"{_bounded('ALTAK-')}[{_ALNUM}]{{16,40}}{_SLASH}[{_HEX}]{{32,}}",
        rf"[{_ALNUM}]{{16}}",
    )

    # Clouds and code hosts.
    yield from _run("aws-key-id", "AKIA ASIA ABIA ACCA", "A-Z0-9", 16, exact=True)
    yield from _run("bedrock-key", "ABSK bedrock-api-key-", _BASE64, 60)
    yield from _run("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _WORD, 36)
    yield from _run("github-token", "github_pat_", _WORD, 40)
    yield from _run("gitlab-token", "glpat- gldt- glrt- glptt- glagent- gloas- glsoat-", _URLSAFE, 20)
    yield from _run("gitlab-token", "glcbt-", _URLSAFE, 22)
    yield from _run("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _HEX, 64)
    yield from _run("docker-token", "dckr_pat_ dckr_oat_", _URLSAFE, 24)
    yield from _run("npm-token", "npm_", _ALNUM, 36)
    yield from _run("pypi-token", "pypi-AgE", _URLSAFE, 50)
    yield from _run("vault-token", "hvs. hvb.", _URLSAFE, 60)
    yield from _run("supabase-key", "sbp_", _HEX, 40)
    yield from _run("supabase-key", "sb_secret_", _URLSAFE, 20)
    yield Rule(
        "azure-secret",
        "Q~",
        rf"{_not_behind('[A-Za-z0-9_~.]')}[A-Za-z0-9_~.]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}"
        + _marked("(?![A-Za-z0-9_~-])"),
        r"[A-Za-z0-9_~.-]{31}",
    )
    # The common annotated key: a signature at a fixed place in 84 characters (security-utilities).
    yield Rule(
        "azure-key",
        "JQQJ9",
        rf"{_not_behind('[A-Za-z0-9]')}[A-Za-z0-9]{{52}}JQQJ9[A-Za-z0-9]{{27}}(?:[A-Za-z0-9]{{2}}==)?{_END}",
        r"[A-Za-z0-9]{27}",
    )
    for name in ("AccountKey", "SharedAccessKey"):
        for literal in (f"{name}=", *_both_cases(f"{name}%3D"), *_GSON_EQUALS):
            pattern = rf"{name}{_EQUALS}(?P<secret>{_letter(_BASE64)}{{40,}})"
            yield Rule("azure-key", literal, pattern, rf"[{_BASE64}\\{_ESCAPES}]{{40}}")

    # Messages, payments, mail.
    for kind_of in "abcdeoprs":
        yield from _run("slack-token", f"xox{kind_of}- xox{kind_of}.", f"{_URLSAFE}.%", 20)
    yield from _run("slack-token", "xapp-", _URLSAFE, 40)
    part = r"[A-Za-z0-9_-]{4,80}"
    secret = f"{part}{_SLASH}{part}{_SLASH}{part}(?:{_SLASH}{part})?"
    yield Rule(
        "slack-hook",
        "hooks.slack.com",
        rf"hooks\.slack\.com{_SLASH}[a-z]{{4,12}}{_SLASH}(?P<secret>{secret})",
        rf"{_SLASH}[a-z]{{4,12}}{_SLASH}",
    )
    yield Rule(
        "discord-hook",
        "webhooks",
        rf"webhooks{_SLASH}[0-9]{{16,20}}{_SLASH}(?P<secret>[{_URLSAFE}]{{60,}})",
        rf"{_SLASH}[0-9]{{16}}",
    )
    for colon in (":", *_both_cases("%3A")):
        yield Rule(
            "telegram-token",
            f"{colon}AA",
            rf"{_not_behind('[0-9]')}[0-9]{{8,10}}{colon}AA[{_URLSAFE}]{{33}}{_END}",
            rf"[{_URLSAFE}]{{33}}",
        )
    yield from _run("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_", _ALNUM, 16)
    yield from _run("stripe-key", "whsec_", _BASE64, 32)
    # Two runs with a dot between them, 22 and 43 long.
    yield Rule(
        "sendgrid-key",
        "SG.",
        rf"{_bounded('SG.')}[{_URLSAFE}]{{16,32}}\.[{_URLSAFE}]{{32,64}}",
        rf"[{_URLSAFE}]{{16,32}}\.",
    )
    # Nothing but 32 hex digits makes these two letters a key's.
    yield from _run("twilio-key", "SK", _HEX, 32, exact=True)
    yield from _run("linear-key", "lin_api_", _ALNUM, 40)
    yield from _run("notion-token", "ntn_", _ALNUM, 40)
    yield from _run("grafana-token", "glsa_ glc_", f"{_WORD}+/=", 32)
    yield from _run("sentry-token", "sntrys_ sntryu_", f"{_WORD}+/=", 60)
    yield from _run("shopify-token", "shpat_ shpss_ shpca_ shppa_", "0-9a-fA-F", 32)

    # Shapes that name no owner.
    yield from _run("jwt", "eyJ", f"{_URLSAFE}.", 20, accept=_if_jwt)
    yield from _signed("X-Amz-Signature", "X-Amz-Security-Token", "X-Goog-Signature")
    yield from _signed("x-amz-signature", "x-amz-security-token", "x-goog-signature")
    yield from _signed("sig", "Signature")
    yield from _after("bearer", _schemes("Bearer"), 16, f"{_URLSAFE}.~+/=", _if_token)
    yield from _after("basic", _schemes("Basic"), 12, _BASE64, _if_basic)
    # The slashes may be escaped, once in a tool's arguments and once more in the JSON round them.
    for literal in ("://", r":\/", r":\\/", r":\\\/"):
        pattern = rf":{_SLASH}{_SLASH}(?P<secret>{_USERINFO})@{_NO_TAG}"
        yield Rule("url-userinfo", literal, pattern, _USERINFO_TAIL, _if_userinfo)
    # Some leave the slashes as they are: Python's ``quote`` does, if not told otherwise.
    for literal in _both_cases("%3A"):
        pattern = rf"%3[Aa]{_SLASH}{_SLASH}(?P<secret>{_ENCODED_USERINFO})%40"
        tail = f"{_SLASH}{_SLASH}(?:{_ENCODED_USERINFO})%40"
        yield Rule("url-userinfo", literal, pattern, tail, _if_userinfo)


#: What parts a scheme from its credentials: as it is, in a URL, in a form, and in a form inside a URL.
_BLANKS = (" ", "%20", "+", *_both_cases("%2B"))


def _schemes(name: str) -> tuple[str, ...]:
    """Return what introduces the credentials of a scheme, in capitals, without, and as it is named."""
    return tuple(spelling + blank for spelling in (name, name.lower(), name.upper()) for blank in _BLANKS)


def _signed(*names: str) -> Iterator[Rule]:
    """Yield the rules for parameters of signed URLs, and of AWS's authorization header."""
    tail = rf"[A-Za-z0-9%+/=_.~\\-]{{{_SIGNATURE}}}"
    for name in names:
        # Go's JSON writes an ampersand as an escape, HTML as a name with a semicolon.
        before = rf"(?:(?<=[?&;, ]{name})|(?<=u0026{name}))"
        pattern = rf"{name}{before}{_JSON_EQUALS}(?P<secret>[A-Za-z0-9%+/=_.~-]{{{_SIGNATURE},}})"
        for literal in (f"{name}=", *_GSON_EQUALS):
            yield Rule("signed-url", literal, pattern, tail, _if_signed)
        # The signed URL as a parameter of another; its own escapes are encoded once more.
        before = "|".join(f"(?<={head}{name})" for head in (r"%26", r"%3[BbFf]", r"%2[0Cc]", r"u0026"))
        secret = rf"(?P<secret>(?:[A-Za-z0-9_.~-]|%(?:25)?(?:2[BbFf]|3[Dd])){{{_SIGNATURE},}})"
        for literal in _both_cases(f"{name}%3D"):
            pattern = f"{name}(?:{before})%3[Dd]{secret}"
            yield Rule("signed-url", literal, pattern, tail, _if_signed)


#: The shortest signature is SHA-1 in base64: 27 characters and an equals sign.
_SIGNATURE = 27


def _if_signed(value: str) -> str | None:
    return value.rstrip(".") if re.search(_DIGIT, value) else None


@functools.cache
def strong_rules() -> tuple[Rule, ...]:
    """Return every strong rule, in the order in which they are run."""
    return tuple(_table())


def _if_luhn(value: str) -> str | None:
    digits = [int(character) for character in value if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return value if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and any(digits) else None


#: Countries by the length of their account numbers: the registry that SWIFT keeps for ISO 13616.
_IBAN_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU",
    31: "MT SC",
    32: "LC",
}


def _if_iban(value: str) -> str | None:
    """Accept as many characters as the country has, if the remainder is right; words may follow them."""
    wanted = next((length for length, names in _IBAN_COUNTRIES.items() if value[:2] in names.split()), 0)
    found = [place for place, character in enumerate(value) if character != " "]
    if not 0 < wanted <= len(found):
        return None
    number = value[: found[wanted - 1] + 1]
    compact = number.replace(" ", "")
    digits = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return number if int(digits) % 97 == 1 else None


def _if_domain(value: str) -> str | None:
    address = value.rstrip(".-")
    return address if "." in address.partition("@")[2] else None


#: What is redacted on request only, in the order in which it is run.
WEAK_RULES = {
    "iban": WeakRule(_marked("(?<![A-Za-z0-9])") + r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}", _if_iban),
    "card": WeakRule(_marked("(?<![0-9])") + "[0-9](?:[ -]?[0-9]){12,18}" + _marked("(?![0-9])"), _if_luhn),
    "email": WeakRule(
        _marked("(?<![A-Za-z0-9._%+-])") + r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{3,253}",
        _if_domain,
    ),
    # With a plus and the country's number, or the three groups of North America.
    "phone": WeakRule(
        _marked("(?<![0-9A-Za-z])")
        + r"(?:\+[0-9](?:[ ().-]{0,2}[0-9]){7,14}|\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4})"
        + _marked("(?![0-9])")
    ),
    "name-value": WeakRule(
        r"(?i:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key)"
        r"""\\{0,3}["']?\s{0,3}(?:=>?|:)\s{0,3}\\{0,3}["']?(?P<secret>[^\s"'<>&,;\\]{4,256})"""
    ),
}
