"""``python -m tests.torture._recorder CASSETTE``: record three answers, and print what came of them."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

from httpx_cassette import Cassette, CassetteError, CassetteStop, CassetteWriteError

from ._calls import Upstream, answer_to, ask, client, said, said_in


def main(path: Path) -> dict[str, list[str]]:
    """Record; return what was returned, carried by the error, lost, and raised without being documented."""
    told: dict[str, list[str]] = {"returned": [], "carried": [], "lost": [], "undocumented": []}
    upstream = Upstream()
    for number in range(3):
        words = f"during {number}"
        try:
            # Each on a client of its own: some calls are made at the first use only.
            with client(Cassette(path), "record", upstream) as asker:
                heard = said(ask(asker, words))
            told["returned" if heard == answer_to(words) else "lost"].append(words)
        except CassetteWriteError as stop:
            told["carried" if said_in(stop.content) == answer_to(words) else "lost"].append(words)
        except (CassetteStop, CassetteError):
            pass  # Refused; where it was paid for all the same, it is lost.
        except Exception as error:
            told["undocumented"].append(repr(error))
    told["lost"] += [words for words in upstream.paid if words not in [*told["returned"], *told["carried"]]]
    return told


if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()):
        result = main(Path(sys.argv[1]))
    print(json.dumps(result))
