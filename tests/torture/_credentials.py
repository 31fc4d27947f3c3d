"""Credentials of every shape that is known, all made up; ways to write one, and to find it again."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

__all__ = ["WAYS", "Planted", "core", "credentials", "leaks"]


class Planted(NamedTuple):
    """A credential, and what stands round it.

    Args:
        kind: Its shape.
        before: What introduces it, and is no secret.
        value: What must not be found.
        after: What ends it.
    """

    kind: str
    before: str
    value: str
    after: str = ""


_ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "H": "0123456789abcdef",
    "U": string.ascii_uppercase + "234567",
    "L": string.ascii_lowercase + string.digits,
    "D": string.digits,
    "B": string.ascii_letters,
}

#: Kind, then with blanks between: what stands before the value, the value, and what stands behind it.
#: ``<A40>`` is a run of 40 letters and digits, ``<B18>`` a user and a password in base64. ``^`` is left out:
#: no scanner shall take this file for a leak.
_SHAPES = """
age-key             | ~ AGE-SECRET-KEY-^1<U58>
anthropic-key       | ~ sk-^ant-api03-<A93>AA
anyscale-key        | ~ esec^ret_<L26>
aws-key-id          | ~ AK^IA<U16>
aws-key-id          | ~ AS^IA<U16>
azure-key           | ~ <A52>JQ^QJ9<A27>
azure-key           | DefaultEndpointsProtocol=https;AccountKey= <A86>== ;x
azure-secret        | ~ abc8^Q~<A34>
basic               | Basic_ <B18>
bearer              | Bearer_ <A40>
bedrock-key         | ~ AB^SK<A128>
cerebras-key        | ~ cs^k-<L48>
databricks-key      | ~ da^pi<H32>
digitalocean-token  | ~ dop^_v1_<H64>
discord-hook        | https://discord.com/api/webhooks/123456789012345678/ <A68> ?wait=1
docker-token        | ~ dckr^_pat_<A27>
e2b-key             | ~ e2^b_<H40>
elevenlabs-key      | ~ s^k_<H48>
firecrawl-key       | ~ f^c-<H32>
fireworks-key       | ~ f^w_aB3<A21>
github-token        | ~ gh^p_<A36>
github-token        | ~ gh^o_<A36>
github-token        | ~ github^_pat_<A22>_<A59>
gitlab-token        | ~ gl^pat-<A20>
gitlab-token        | ~ gl^cbt-64_<A20>
google-key          | ~ AI^zaSy<A33>
google-key          | ~ AQ.^Ab8RN6<A40>
google-secret       | ~ GOC^SPX-<A28>
google-token        | ~ ya^29.a0<A60>
grafana-token       | ~ gl^sa_<A32>_<H8>
groq-key            | ~ gs^k_<A52>
hf-token            | ~ h^f_<A34>
jina-key            | ~ ji^na_<A60>
jwt                 | ~ ey^J<A17>.eyJ<A25>.<A43>
langsmith-key       | ~ ls^v2_pt_<H32>_<H10>
linear-key          | ~ li^n_api_<A40>
notion-token        | ~ nt^n_<A46>
npm-token           | ~ np^m_<A36>
nvidia-key          | ~ nv^api-<A64>
openai-key          | ~ s^k-aB3<A45>
openai-key          | ~ s^k-proj-<A40>_-<A40>7
openai-key          | ~ s^k-or-v1-<H64>
perplexity-key      | ~ pp^lx-<A48>
pinecone-key        | ~ pc^sk_<A70>
private-key         | ~ -----BEGIN_RSA_PRIVATE^_KEY-----%<A64>%<A64>%<A20>==%-----END_RSA_PRIVATE^_KEY-----
pypi-token          | ~ py^pi-AgEIcHlwaS5vcmc<A80>
qianfan-key         | ~ AL^TAK-<A21>/<H40>
replicate-key       | ~ r^8_<A37>
sendgrid-key        | ~ S^G.<A22>.<A43>
sentry-token        | ~ snt^ryu_<H64>
shopify-token       | ~ sh^pat_<H32>
signed-url          | https://b.s3.amazonaws.com/k?X-Amz-Signature= <H64> &x=1
signed-url          | https://a.blob.core.windows.net/c?sv=2024&sig= 1<A42>%3D &se=1
slack-hook          | https://hooks.slack.com/services/T01234567/B01234567/ <A24>
slack-token         | ~ xo^xb-123456789012-<D13>-<A24>
stripe-key          | ~ s^k_live_<A24>
stripe-key          | ~ wh^sec_<A32>
supabase-key        | ~ sb^p_<H40>
tavily-key          | ~ tv^ly-dev-<A32>
telegram-token      | ~ <D9>:A^A<A33>
together-key        | ~ tg^p_v1_<A43>
twilio-key          | ~ S^K<H32>
url-userinfo        | postgres://app: <A20> @db.internal:5432/app
vault-token         | ~ hv^s.<A90>
vercel-key          | ~ vc^k_<A56>
voyage-key          | ~ p^a-aB3<A40>
xai-key             | ~ xa^i-<A80>
"""


def credentials(number: int, chance: random.Random) -> list[Planted]:
    """Return so many credentials, of every shape."""
    shapes = [line for line in _SHAPES.splitlines() if line]
    return [_make(shapes[at % len(shapes)], chance) for at in range(number)]


def _make(shape: str, chance: random.Random) -> Planted:
    kind, _, rest = shape.partition("|")
    parts = [part.replace("^", "").replace("_", "\0") for part in rest.split()]
    before, value, after = [*parts, ""][:3]
    # A blank is written ``_`` beside a value, and in the marks of a key block; else ``_`` is itself.
    is_block = value.startswith("-----")
    value = value.replace("\0", " " if is_block else "_")
    if is_block:
        value = value.replace("%", "\n")
    return Planted(
        kind.strip(),
        "" if before == "~" else before.replace("\0", " "),
        _fill(value, chance),
        after.replace("\0", " "),
    )


def _fill(shape: str, chance: random.Random) -> str:
    pieces, rest = [], shape
    while "<" in rest:
        text, _, rest = rest.partition("<")
        run, _, rest = rest.partition(">")
        letters = chance.choices(_ALPHABETS[run[0]], k=int(run[1:]))
        # A digit among letters: what all rules ask for that ask for anything.
        letters[len(letters) // 2] = chance.choice("234567")
        made = "".join(letters)
        pieces += [text, base64.b64encode(f"user:{made}".encode()).decode() if run[0] == "B" else made]
    return "".join([*pieces, rest])


def core(value: str) -> str:
    """Return the part of a credential that must not be found: its longest run of letters and digits."""
    runs = "".join(
        character if character.isascii() and character.isalnum() else " " for character in value
    ).split()
    return max(runs, key=len)


def _raw(planted: Planted) -> str:
    return planted.before + planted.value + planted.after


def _json_escaped(planted: Planted) -> str:
    """As in the arguments of a tool call, which are JSON in a string: slashes and line breaks escaped."""
    return json.dumps({"argument": _raw(planted)}).replace("/", "\\/")


def _percent(planted: Planted) -> str:
    """As in a URL, which does not encode its own parts."""
    return planted.before + quote(planted.value, safe="") + planted.after


def _base64(planted: Planted) -> str:
    return base64.b64encode(planted.value.encode()).decode()


WAYS: dict[str, Callable[[Planted], str]] = {
    "raw": _raw,
    "JSON-escaped": _json_escaped,
    "percent": _percent,
    "base64": _base64,
}


def leaks(text: str, value: str) -> bool:
    """Tell whether a credential, or enough of it, is in a text, in any of the ways."""
    needle = core(value)
    if needle in text:
        return True
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + needle.encode()).decode()
        inner = encoded[-(-shift * 8 // 6) : (shift + len(needle)) * 8 // 6]
        if inner in text or inner.replace("+", "-").replace("/", "_") in text:
            return True
    return False
