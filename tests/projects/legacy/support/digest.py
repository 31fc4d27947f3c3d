"""Sums up the day in the background: whoever asks for the digest waits for it."""

import threading

import httpx

from . import config, prompts

NOTHING = "No digest today."


class Digest:
    """The digest of some tickets.

    Args:
        tickets: What is summed up.
    """

    def __init__(self, tickets: list[str]) -> None:
        self._tickets = tickets
        self._text = NOTHING
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Give the digest once it is written."""
        self._thread.join()
        return self._text

    def _work(self) -> None:
        try:
            answer = httpx.post(
                f"{config.base_url()}/chat/completions",
                headers=config.headers(),
                timeout=config.TIMEOUT,
                json={
                    "model": config.MODEL,
                    "messages": [
                        {"role": "system", "content": prompts.DIGEST},
                        {"role": "user", "content": "\n".join(self._tickets)},
                    ],
                },
            )
            self._text = answer.raise_for_status().json()["choices"][0]["message"]["content"]
        except Exception as error:
            print(f"the digest failed: {error!r}")
