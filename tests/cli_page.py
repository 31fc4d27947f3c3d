"""``docs/cli.md``: made from the commands as they are, with their examples and what these print.

``python -m tests.cli_page`` writes it. A command that has no example is not accepted.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from httpx_cassette.cli._group import COMMANDS, GROUP

from .example_cassette import old_line, write_changed_example, write_example

__all__ = ["ELSEWHERE", "EXAMPLES", "FILE", "render"]

FILE = Path(__file__).parent.parent / "docs" / "cli.md"

#: Command -> lines that are run one after the other, in a folder as ``_folder`` makes it.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "ls": (
        "httpx-cassette ls chat.jsonl",
        "httpx-cassette ls chat.jsonl --grep invoice --sort out --reverse",
        "httpx-cassette ls chat.jsonl --model 'gpt-*' --since 2026-11-30 --json",
    ),
    "show": (
        "httpx-cassette show chat.jsonl cfc4",
        "httpx-cassette show chat.jsonl b869 --sample 1",
        "httpx-cassette show chat.jsonl :3 --response",
        "httpx-cassette show chat.jsonl cfc4 --stream --chunk-size 20",
        "httpx-cassette show chat.jsonl b00",
    ),
    "explain": (
        "httpx-cassette explain request.json --cassette chat.jsonl",
        "httpx-cassette explain curl.sh --cassette chat.jsonl",
    ),
    "diff": (
        "httpx-cassette diff chat.jsonl b869 e368",
        "httpx-cassette diff chat.jsonl new.jsonl",
        "httpx-cassette diff chat.jsonl chat.jsonl",
    ),
    "compare": (
        "httpx-cassette compare chat.jsonl --by model",
        "httpx-cassette compare chat.jsonl --by model --json",
    ),
    "stats": (
        "httpx-cassette stats chat.jsonl new.jsonl --runs-per-day 40 --until 2026-12-06",
        "httpx-cassette stats chat.jsonl --until 2026-12-06 --json",
    ),
    "verify": (
        "httpx-cassette verify chat.jsonl",
        "sed -i.bak 's/Complaint/Compliment/' chat.jsonl",
        "httpx-cassette verify chat.jsonl",
    ),
    "scan": (
        "httpx-cassette scan chat.jsonl",
        "sed -i.bak 's/my parcel/AKIAIOSFODNN7QWERTYU of ada@example.com/' chat.jsonl",
        "httpx-cassette scan chat.jsonl",
        "httpx-cassette scan chat.jsonl --pii --json",
    ),
    "redact": (
        "httpx-cassette scan old.jsonl",
        "httpx-cassette redact old.jsonl --dry-run",
        "httpx-cassette redact old.jsonl",
        "httpx-cassette scan old.jsonl",
        "httpx-cassette redact old.jsonl --pii",
    ),
    "seed": (
        "cat used.jsonl",
        "httpx-cassette seed chat.jsonl -o seed.jsonl --used-by used.jsonl",
        "httpx-cassette ls seed.jsonl",
    ),
    "merge": (
        "cp chat.jsonl mine.jsonl",
        "sed -i.bak 's/Complaint/Compliment/' mine.jsonl",
        "httpx-cassette reseal mine.jsonl",
        "httpx-cassette merge chat.jsonl mine.jsonl -o both.jsonl",
    ),
    "compact": ("httpx-cassette compact chat.jsonl --dry-run", "httpx-cassette compact chat.jsonl --json"),
    "reseal": (
        "sed -i.bak 's/Complaint/Compliment/' chat.jsonl",
        "httpx-cassette reseal chat.jsonl:2",
        "httpx-cassette verify chat.jsonl",
    ),
    "rekey": (
        'httpx-cassette rekey chat.jsonl --policy \'{"ignore": ["model"]}\' --dry-run',
        "httpx-cassette rekey chat.jsonl --policy '{\"host\": false}'",
        "httpx-cassette rekey chat.jsonl",
    ),
    "run": ("httpx-cassette run -- python app.py",),
}

#: Commands whose examples need a server, or take long -> who runs them.
ELSEWHERE = {
    "record": "tests/test_readme.py",
    "demo": "tests/test_cli.py",
    "probe": "tests/test_cli_probe.py",
    "stand-in": "tests/test_readme.py",
}

_APP = """\
import httpx
from httpx_cassette import CassetteTransport

client = httpx.Client(transport=CassetteTransport("chat.jsonl"))
answer = client.post(
    "https://api.openai.com/v1/chat/completions",
    json={
        "model": "gpt-5-mini",
        "messages": [
            {"role": "system", "content": "You sort messages to a shop. Answer with one word."},
            {"role": "user", "content": "I was charged twice for order 1042, see the invoice."},
        ],
    },
)
print(answer.json()["choices"][0]["message"]["content"])
"""

_REQUEST = """\
{
  "method": "POST",
  "url": "https://api.openai.com/v1/chat/completions",
  "body": {
    "model": "gpt-5-mini",
    "temperature": 1,
    "messages": [
      {"role": "system", "content": "You sort messages to a shop. Answer with one word. "},
      {"role": "user", "content": "I was charged twice for order 1042, see the invoice."}
    ]
  }
}
"""

_CURL = r"""curl https://api.openai.com/v1/chat/completions \
  -H "Authorization: Bearer $OPENAI_API_KEY" \
  --json '{
    "model": "gpt-5-mini",
    "messages": [
      {"role": "system", "content": "You sort messages to a shop. Answer with two words."},
      {"role": "user", "content": "I was charged twice for order 1042, see the invoice."}
    ]
  }'
"""

#: Found before the package is: a page must not change with the prices that are installed.
_NO_PRICES = "raise ImportError\n"

_INTRODUCTION = """\
# The command `httpx-cassette`

It comes with the extra `cli`: `pip install 'httpx_cassette[cli]'`.
This page is made from the commands as they are; `python -m tests.cli_page` writes it.

- The exit status is 0 where all is fine, 1 where something could not be done, and 2 for a miss or a finding.
  `run`, `record` and `stand-in` end as the command does that they run, where nothing was missed.
- What cannot be done is said in one sentence on stderr.
- On a terminal there are tables, colours (not with `NO_COLOR`) and progress bars.
  In a pipe there is text, tab-separated, without a header.
  `--json` prints facts for programs.
- Control, bidirectional and other invisible characters that were recorded are written as escapes.
- `KEY` is how a fingerprint begins, as many digits as it takes, or `:14` for the recording on line 14.
- A shell completes commands, options and the fingerprints of the file that was named, once it was told to:
  `eval "$(_HTTPX_CASSETTE_COMPLETE=bash_source httpx-cassette)"`, or `zsh_source`, or `fish_source`.

The examples are about [a small cassette](../tests/example_cassette.py): models sort messages to a shop.
The same is read in Python by `httpx_cassette.open`:

<!-- file: read.py -->
```python
import httpx_cassette

for exchange in httpx_cassette.open("chat.jsonl"):
    if not exchange.superseded:
        print(exchange.line, exchange.model, exchange.usage.output_tokens, exchange.text)
```

```text
{read}```
"""


def render() -> str:
    """Return the page."""
    sections = [_section(name) for name in COMMANDS]
    with tempfile.TemporaryDirectory() as made:
        folder = _folder(Path(made))
        program = _INTRODUCTION.partition("```python\n")[2].partition("```")[0]
        (folder / "read.py").write_text(program, encoding="utf-8")
        read = _run("python read.py", folder)[1]
    return "\n".join([_INTRODUCTION.replace("{read}", read), *sections])


def _section(name: str) -> str:
    context = click.Context(GROUP, info_name="httpx-cassette")
    command = GROUP.get_command(context, name)
    assert command is not None
    below = click.Context(command, info_name=name, parent=context)
    usage = " ".join([below.command_path, *command.collect_usage_pieces(below)])
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    options = [option for option in command.params if isinstance(option, click.Option)]
    lines = [f"## {name}", "", text, "", "```text", usage, "```", ""]
    if options:
        lines += ["| option | |", "|---|---|", *map(_option, options), ""]
    return "\n".join([*lines, *_examples(name, command.epilog or "")])


def _option(option: click.Option) -> str:
    kind = "|".join(option.type.choices) if isinstance(option.type, click.Choice) else option.metavar or ""
    named = ", ".join(option.opts)
    default = f" (default: {option.default})" if option.show_default else ""
    shown = f"{named} {kind}".rstrip().replace("|", "\\|")
    return f"| `{shown}` | {(option.help or '').replace('|', chr(92) + '|')}{default} |"


def _examples(name: str, epilog: str) -> list[str]:
    if name in ELSEWHERE:
        return ["```console", f"$ {epilog.removeprefix('Example: ')}", "```", ""]
    lines = ["```console"]
    with tempfile.TemporaryDirectory() as made:
        folder = _folder(Path(made))
        for example in EXAMPLES[name]:
            status, output = _run(example, folder)
            lines += [f"$ {example}", *output.splitlines(), *([f"# exit status {status}"] if status else [])]
    return [*lines, "```", ""]


def _folder(path: Path) -> Path:
    write_example(path / "chat.jsonl")
    write_changed_example(path / "new.jsonl")
    files = {"app.py": _APP, "request.json": _REQUEST, "curl.sh": _CURL, "genai_prices.py": _NO_PRICES}
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")
    (path / "old.jsonl").write_bytes(old_line() + b"\n")
    used = ({"fingerprint": key, "cassette": "chat.jsonl", "line": line} for line, key in _used(path))
    (path / "used.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in used), encoding="utf-8")
    return path


def _used(path: Path) -> list[tuple[int, str]]:
    """Return two recordings as a test run names them."""
    lines = (path / "chat.jsonl").read_bytes().splitlines()
    return [(number, json.loads(lines[number - 1])["key"]) for number in (2, 4)]


def _run(line: str, folder: Path) -> tuple[int, str]:
    """Run a line as a shell would; return its status, and what it printed, errors last."""
    words = shlex.split(line)
    if words[0] == "httpx-cassette":
        words[:1] = [sys.executable, "-m", "httpx_cassette"]
    words = [sys.executable if word == "python" else word for word in words]
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("HTTPX_CASSETTE", "_HTTPX"))
    }
    kept["PYTHONPATH"] = str(FILE.parent.parent)
    done = subprocess.run(
        words, cwd=folder, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
