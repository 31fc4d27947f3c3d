"""Gives tickets a title. The one module that uses the SDK."""

import openai

from . import config, prompts


def title(ticket: str) -> str:
    """Give a ticket a title: its first words, where the model gives none."""
    client = openai.OpenAI(base_url=config.base_url(), api_key="from the vault", max_retries=1)
    try:
        answer = client.chat.completions.create(
            model=config.MODEL,
            messages=[
                {"role": "system", "content": prompts.TITLE},
                {"role": "user", "content": ticket},
            ],
        )
        return answer.choices[0].message.content or ""
    except Exception:
        return " ".join(ticket.split()[:6])
