"""The three contracts of the README, each shown by one program, or one suite, that is written out here.

The client, the cassette and the server are real ones. While a contract is shown the server is stopped, or
listens in vain.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from httpx_cassette.stand_in import StandInServer

#: What each program begins with: a count of the connections that it makes, by whichever library.
PROLOGUE = """
import sys

connects = []
sys.addaudithook(lambda event, args: event == "socket.connect" and connects.append(args[1]))

import httpx
from httpx_cassette import CassetteTransport, expected_miss

url, headers = sys.argv[1] + "/chat/completions", {"authorization": "Bearer not-needed-to-replay"}

def body(ticket, system="You sort support tickets into: billing, bug, other."):
    return {
        "model": "gpt-4o-mini",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": ticket}],
    }
"""


def run(folder: Path, program: str, url: str, mode: str = "replay") -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with nothing in its environment but the mode."""
    (folder / "program.py").write_text(PROLOGUE + dedent(program), encoding="utf-8")
    names = ("HTTPX_CASSETTE", "PYTEST", "OPENAI")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return subprocess.run(
        [sys.executable, "program.py", url],
        cwd=folder,
        env={**inherited, "HTTPX_CASSETTE_MODE": mode},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_replay_is_free(loopback: None, tmp_path: Path) -> None:
    """Forty runs of a suite make no connection, and the server that could answer them has no call."""
    suite = """
        TICKETS = ["I was charged twice.", "The page stays white.", "Where is the dark mode?"]

        def ask(client, ticket):
            answer = client.post(url, json=body(ticket)).raise_for_status()
            return answer.json()["choices"][0]["message"]["content"]

        def run_suite():
            with httpx.Client(transport=CassetteTransport("suite.jsonl"), headers=headers) as client:
                return tuple(ask(client, ticket) for ticket in TICKETS)

        answers = {run_suite() for _ in range(40)}
        print(len(answers), "wording,", len(connects), "connections")
    """
    with StandInServer() as server:
        recording = run(tmp_path, suite, server.url, mode="record")
        calls = server.calls
        replaying = run(tmp_path, suite, server.url)

        # The first of the forty runs was recorded: three calls, over one connection.
        assert ("1 wording, 1 connections\n", 3) == (recording.stdout, calls)
        assert ("1 wording, 0 connections\n", 3) == (replaying.stdout, server.calls)
    stopped = run(tmp_path, suite, server.url)

    assert (0, "1 wording, 0 connections\n") == (stopped.returncode, stopped.stdout)


def test_a_miss_is_loud(loopback: None, tmp_path: Path) -> None:
    """Behind a retry loop, an ``except Exception`` and a fallback, in a thread: it is printed, and 2."""
    application = """
        import threading, time

        SYSTEM = "You sort {}."

        def ask(ticket, system):
            client = httpx.Client(transport=CassetteTransport("tickets.jsonl"), headers=headers)
            for attempt in range(3):
                try:
                    return client.post(url, json=body(ticket, system)).raise_for_status().json()
                except Exception:
                    time.sleep(0.01)
            return "a canned answer"

        def work():
            try:
                print("answered" if "choices" in ask("I was charged twice.", SYSTEM) else "canned")
            except Exception:
                print("canned")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        print(len(connects), "connections")
    """
    with StandInServer() as server:
        recording = run(tmp_path, application.format("tickets"), server.url, mode="record")
    edited = run(tmp_path, application.format("letters"), server.url)
    report = re.sub(r"[0-9a-f]{64}", "<fingerprint>", edited.stderr.partition("\nException in thread")[0])

    assert (0, "answered\n1 connections\n") == (recording.returncode, recording.stdout)
    assert (2, "0 connections\n") == (edited.returncode, edited.stdout)
    assert [
        f"no recording for POST {server.url}/chat/completions in tickets.jsonl",
        "  model        gpt-4o-mini",
        "  fingerprint  <fingerprint> (key version 1, dialect openai-chat)",
        "  cassette     tickets.jsonl: 1 recording",
        "  nearest      tickets.jsonl:1, recorded <time>: 1 of 7 fields differs",
        '    messages[0].content   "You sort tickets." -> "You sort letters."',
        f"  to record it: HTTPX_CASSETTE_MODE=record python program.py {server.url}",
    ] == re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", report).splitlines()


def test_the_key_is_explainable(loopback: None, tmp_path: Path) -> None:
    """What ``explain`` prints is what was hashed, and an edited word is named by the field it stands in."""
    program = """
        transport = CassetteTransport("tickets.jsonl")
        client = httpx.Client(transport=transport, headers=headers)
        sent = body("I was charged twice.  ") | {"n": 1}
        request = client.build_request("POST", url, json=sent)
        answer = client.send(request)
        print(transport.explain(request))
        print(transport.fingerprint(request))
        print(answer.extensions["httpx_cassette"].fingerprint)
    """
    edited = """
        with expected_miss() as miss:
            client.post(url, json=sent | body("I was charged thrice."))
        print(*miss.changed)
    """
    with StandInServer() as server:
        run(tmp_path, program, server.url, mode="record")
    done = run(tmp_path, program + edited, server.url)
    explanation, _, printed = done.stdout.partition("\nkey document\n")
    document, end = json.JSONDecoder().raw_decode(printed)

    assert {
        "method": "POST",
        "url": f"{server.url}/chat/completions",
        # Without the blanks at the end, and without the number of answers that is one by default.
        "body": {
            "json": {
                "model": "gpt-4o-mini",
                "messages": [
                    {"role": "system", "content": "You sort support tickets into: billing, bug, other."},
                    {"role": "user", "content": "I was charged twice."},
                ],
            }
        },
    } == document

    # RFC 8785, for a document of nothing but ASCII texts.
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    fingerprint = hashlib.sha256(f"httpx-cassette key 1\n{canonical}".encode()).hexdigest()

    assert fingerprint in explanation
    assert [fingerprint, fingerprint, "messages[1].content"] == printed[end:].split()
    assert 0 == done.returncode
