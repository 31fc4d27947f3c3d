"""Names the language of a ticket, with a client that the whole module shares."""

import httpx

from . import config, prompts

client = httpx.Client(headers=config.headers(), timeout=config.TIMEOUT)


def language(text: str) -> str:
    """Give the language of a text, or "unknown"."""
    try:
        answer = client.post(
            f"{config.base_url()}/chat/completions",
            json={
                "model": config.MODEL,
                "messages": [
                    {"role": "system", "content": prompts.LANGUAGE},
                    {"role": "user", "content": text},
                ],
            },
        )
        return answer.raise_for_status().json()["choices"][0]["message"]["content"]
    except Exception:
        return "unknown"
