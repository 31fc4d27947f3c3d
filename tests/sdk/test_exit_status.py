"""A program that misses ends with status 2, whatever it does with the error between the SDK and its end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
import openai

if int(openai.VERSION.partition(".")[0]) >= 3:
    from httpx_cassette.httpx2 import CassetteTransport
    from openai import DefaultAsyncHttpx2Client as AsyncHttp, DefaultHttpx2Client as Http
else:
    from httpx_cassette import CassetteTransport
    from openai import DefaultAsyncHttpxClient as AsyncHttp, DefaultHttpxClient as Http

def make_client():
    return openai.OpenAI(api_key="any", http_client=Http(transport=CassetteTransport("none.jsonl")))

ASK = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}],
}
"""

ENDINGS = {
    "nothing": """
        with make_client() as client:
            client.chat.completions.create(**ASK)
    """,
    "a stream": """
        with make_client() as client:
            with client.chat.completions.stream(**ASK) as stream:
                stream.until_done()
    """,
    "except Exception": """
        with make_client() as client:
            try:
                client.chat.completions.create(**ASK)
            except Exception:
                pass
    """,
    "except openai.OpenAIError, then a bare one": """
        import sys

        with make_client() as client:
            try:
                try:
                    client.chat.completions.create(**ASK)
                except openai.OpenAIError:
                    print("wrapped")
            except:
                print("swallowed")
        sys.exit(0)
    """,
    "asyncio.gather": """
        import asyncio

        async def main():
            http_client = AsyncHttp(transport=CassetteTransport("none.jsonl"))
            async with openai.AsyncOpenAI(api_key="any", http_client=http_client) as client:
                calls = (client.chat.completions.create(**ASK) for _ in range(3))
                await asyncio.gather(*calls, return_exceptions=True)

        asyncio.run(main())
    """,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_that_misses_ends_with_2(tmp_path: Path, ending: str) -> None:
    """It says what was asked, once, and does not say that the SDK failed to connect."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + textwrap.dedent(ENDINGS[ending]))
    # Not the ledger of this process: the misses are the program's own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HTTPX_CASSETTE")}
    ended = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )

    reports = [line for line in ended.stderr.splitlines() if line.startswith("no recording for POST https")]

    assert 2 == ended.returncode, ended.stderr
    assert ["no recording for POST https://api.openai.com/v1/chat/completions in none.jsonl"] == reports
    assert "APIConnectionError" not in ended.stderr
    assert "wrapped" not in ended.stdout
