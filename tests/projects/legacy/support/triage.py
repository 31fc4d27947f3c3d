"""Sorts a ticket. It never fails: a ticket that cannot be sorted is looked at by a person."""

import logging
import time

import httpx

from . import config, prompts

log = logging.getLogger(__name__)

CATEGORIES = ("billing", "bug", "other")
ATTEMPTS = 3


def triage(ticket: str) -> str:
    """Give the category of a ticket."""
    if not ticket.strip():
        return "other"
    for attempt in range(ATTEMPTS):
        try:
            return _read(_ask(ticket))
        except Exception:
            log.warning("triage failed, attempt %d of %d", attempt + 1, ATTEMPTS, exc_info=True)
            time.sleep(0.01 * 2**attempt)
    return "other"


def _ask(ticket: str) -> str:
    with httpx.Client(base_url=config.base_url(), headers=config.headers(), timeout=config.TIMEOUT) as client:
        answer = client.post(
            "/chat/completions",
            json={
                "model": config.MODEL,
                "temperature": 0,
                "messages": [
                    {"role": "system", "content": prompts.SORT},
                    {"role": "user", "content": ticket},
                ],
            },
        )
        answer.raise_for_status()
        return answer.json()["choices"][0]["message"]["content"]


def _read(text: str) -> str:
    said = text.lower()
    return next((category for category in CATEGORIES if category in said), "other")
