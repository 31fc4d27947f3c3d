"""Writes replies, many at once."""

import asyncio

import httpx

from . import config, prompts

CANNED = "Thank you for your message. A colleague will answer it soon."


async def reply(ticket: str) -> str:
    """Write the reply to one ticket."""
    async with httpx.AsyncClient(base_url=config.base_url(), headers=config.headers()) as client:
        return await _reply(client, ticket)


async def reply_to_all(tickets: list[str]) -> list[str]:
    """Write the replies to many tickets."""
    async with httpx.AsyncClient(base_url=config.base_url(), headers=config.headers()) as client:
        return await asyncio.gather(*(_reply(client, ticket) for ticket in tickets))


async def _reply(client: httpx.AsyncClient, ticket: str) -> str:
    body = {
        "model": config.MODEL,
        "messages": [
            {"role": "system", "content": prompts.REPLY},
            {"role": "user", "content": ticket},
        ],
    }
    try:
        answer = await client.post("/chat/completions", json=body, timeout=config.TIMEOUT)
        answer.raise_for_status()
        return answer.json()["choices"][0]["message"]["content"]
    except Exception:
        return CANNED
