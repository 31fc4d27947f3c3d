"""``python -m tests.conformance``: what is tried, and the exit status.

0: everything is equal. 1: something differs. 2: misuse.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from httpx_cassette import CassetteStop
from httpx_cassette.dialects import recognise

from ._anthropic_completions import AnthropicCompletionsJudge
from ._anthropic_messages import AnthropicMessagesJudge
from ._compatible import CompatibleJudge, vendor_of
from ._exchanges import Exchange, NotExchanges, find_files, read_exchanges
from ._gemini import GeminiJudge
from ._gemini_interactions import GeminiInteractionsJudge
from ._judge import Judge
from ._library import IS_HTTPX2, CassetteTransport
from ._mistral import MistralJudge, is_of_mistral
from ._mistral_conversations import MistralConversationsJudge
from ._ollama import OllamaJudge
from ._openai_chat import OpenAIChatJudge
from ._openai_completions import OpenAICompletionsJudge
from ._openai_responses import OpenAIResponsesJudge
from ._report import FileReport, as_data, as_text
from ._sabotage import SABOTAGES, sabotaged
from ._trial import SETTINGS, Outcome, Setting, try_exchange
from ._unknown import try_unknown
from ._writer import WriterJudge

#: Dialect -> the SDK that judges it.
JUDGES: dict[str, Callable[[Exchange], Judge]] = {
    "anthropic-completions": AnthropicCompletionsJudge,
    "anthropic-messages": AnthropicMessagesJudge,
    "gemini": GeminiJudge,
    "gemini-interactions": GeminiInteractionsJudge,
    "mistral": MistralJudge,
    "mistral-conversations": MistralConversationsJudge,
    "ollama": OllamaJudge,
    "openai-chat": OpenAIChatJudge,
    "openai-completions": OpenAICompletionsJudge,
    "openai-responses": OpenAIResponsesJudge,
    "writer": WriterJudge,
}

# It brings httpx2 (by way of tokenizers and huggingface_hub): it is not where that must not be.
if importlib.util.find_spec("cohere") is not None:
    from ._cohere import CohereJudge, CohereV1Judge

    JUDGES |= {"cohere": CohereJudge, "cohere-v1": CohereV1Judge}

# So does the hub itself; before its second version it is built on httpx, and not judged by.
if importlib.util.find_spec("huggingface_hub") is not None and IS_HTTPX2:
    from ._huggingface import HuggingFaceJudge

    JUDGES["huggingface"] = HuggingFaceJudge

# It brings what reads binary streams, which is not in the session of old SDKs either.
if importlib.util.find_spec("botocore") is not None:
    from ._anthropic_bedrock import AnthropicBedrockJudge
    from ._bedrock import BedrockJudge

    JUDGES |= {"anthropic-bedrock": AnthropicBedrockJudge, "bedrock": BedrockJudge}


def main(arguments: Sequence[str] | None = None) -> int:
    """Hold the invariants against folders of recorded exchanges and return the exit status."""
    options = _parser().parse_args(arguments)
    transport = sabotaged(SABOTAGES[options.sabotage]) if options.sabotage else CassetteTransport
    every = 1 if options.full else options.every
    settings = [Setting(options.chunk_size)] if options.chunk_size else SETTINGS
    try:
        files = [path for folder in options.folders for path in find_files(folder, options.files)]
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What is stored event by event stands in the table.
            reports = [_try_file(path, every, transport, Path(folder), settings) for path in files]
    except NotExchanges as error:
        return _refuse(str(error))
    if not any(report.outcomes for report in reports):
        return _refuse(f"no exchange of a format that is judged ({', '.join(sorted(JUDGES))}) was found")
    if options.json:
        print(json.dumps(as_data(reports), default=repr))
    else:
        print(as_text(reports))
    return 1 if any(report.differing for report in reports) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description="Hold the stream invariants against recorded exchanges, with the real SDKs as judges.",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a folder of exchange files")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--full", action="store_true", help="try every exchange")
    chosen.add_argument("--every", type=_count, default=5, metavar="N", help="try every n-th (default: 5)")
    parser.add_argument("--files", default="*.jsonl", metavar="GLOB", help="try these files only")
    parser.add_argument(
        "--chunk-size", type=_count, metavar="N", help="replay cut in this way only, not in eight"
    )
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    names = ", ".join(SABOTAGES)
    parser.add_argument("--sabotage", choices=SABOTAGES, metavar="NAME", help=f"falsify replays: {names}")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count; give 1 or more")
    return int(text)


def _refuse(message: str) -> int:
    print(f"Error: {message}", file=sys.stderr)
    return 2


def _try_file(
    path: Path,
    every: int,
    transport: type[CassetteTransport],
    folder: Path,
    settings: Sequence[Setting],
) -> FileReport:
    exchanges = read_exchanges(path)
    report = FileReport(path.stem, len(exchanges))
    chosen = exchanges[::every]
    for number, exchange in enumerate(chosen):
        _show_progress(path.stem, number, len(chosen))
        dialect = recognise(urlsplit(exchange.url).path, exchange.body).name
        outcomes = [
            _try_safely(exchange, dialect, make_judge, transport, folder, settings)
            for make_judge in _find_judges(dialect, exchange)
        ]
        if not outcomes:
            report.not_judged[dialect] += 1
            continue
        outcome, *others = outcomes
        outcome.faults += [fault for other in others for fault in other.faults]
        if outcome.stored == "verbatim" and path.stem == dialect:
            # Other servers may send what the dialect does not know; its own must not.
            outcome.blame("stored event by event")
        report.outcomes.append(outcome)
    _show_progress(path.stem, 0, 0)
    return report


def _find_judges(dialect: str, exchange: Exchange) -> Sequence[Callable[[Exchange], Judge] | None]:
    """Return who judges an exchange: chat at a vendor's own host is read by the vendor's SDK, too.

    Returns:
        Nobody where the SDK is not here; ``None`` for what no SDK reads: its bytes are compared.
    """
    # To delete an answer is no call that a model answers.
    if dialect == "generic" or exchange.method == "DELETE":
        return [None]
    if dialect == "openai-chat" and is_of_mistral(exchange):
        return [JUDGES["mistral"]]
    if dialect == "anthropic-messages" and exchange.url.endswith("/invoke-with-response-stream"):
        dialect = "anthropic-bedrock"  # A client of its own, in the same SDK.
    found = [JUDGES[dialect]] if dialect in JUDGES else []
    return [*found, CompatibleJudge] if dialect == "openai-chat" and vendor_of(exchange.url) else found


def _try_safely(
    exchange: Exchange,
    dialect: str,
    make_judge: Callable[[Exchange], Judge] | None,
    transport: type[CassetteTransport],
    folder: Path,
    settings: Sequence[Setting],
) -> Outcome:
    is_stream = "stream" in exchange.tags
    try:
        if make_judge is None:
            return try_unknown(exchange, dialect, transport, folder)
        judge = make_judge(exchange)
        is_stream = judge.is_stream
        return try_exchange(exchange, judge, transport, folder, settings)
    except (Exception, CassetteStop) as error:
        outcome = Outcome(exchange.id, is_stream)
        outcome.blame("raised", f"{type(error).__name__}: {error}")
        return outcome


def _show_progress(name: str, number: int, total: int) -> None:
    """Draw a bar where somebody watches; a total of nothing wipes it away."""
    if not sys.stderr.isatty():
        return
    bar = f"{'#' * (30 * number // total):30}  {number}/{total}  {name}" if total else ""
    print(f"\r\x1b[K{bar}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    for name in ("HTTPX_CASSETTE_MODE", "HTTPX_CASSETTE_MAX_CALLS"):
        os.environ.pop(name, None)
    # What is not recorded stands in the table.
    logging.getLogger("httpx_cassette").setLevel(logging.CRITICAL)
    sys.exit(main())
