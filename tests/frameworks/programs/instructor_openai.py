"""instructor over openai: an object that grows while it is streamed, and one that is asked for twice."""

from __future__ import annotations

from typing import Any

import instructor
import openai
import pydantic

from httpx_cassette.httpx2 import CassetteTransport


class Forecast(pydantic.BaseModel):
    """What is asked for."""

    city: str


class ForecastForOslo(Forecast):
    """The same, of which the first answer is none."""

    @pydantic.field_validator("city")
    @classmethod
    def is_oslo(cls, city: str) -> str:
        """Refuse any other city."""
        assert city == "Oslo", "say Oslo"
        return city


def _asked(system: str) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": "What is the weather in Paris?"},
    ]
    return {"model": "gpt-5-mini", "messages": messages, "max_retries": 2}


def talk(system: str, cassette: str | None) -> Any:
    """Stream an object, then have one corrected."""
    http = cassette and openai.DefaultHttpx2Client(transport=CassetteTransport(cassette))
    client = instructor.from_openai(openai.OpenAI(http_client=http or None))
    grown = [part.city for part in client.create_partial(response_model=Forecast, **_asked(system))]
    found, completion = client.create_with_completion(response_model=ForecastForOslo, **_asked(system))
    return [grown[-1], found.city, completion.usage.total_tokens]


async def talk_async(system: str, cassette: str | None) -> Any:
    """The same in an event loop."""
    http = cassette and openai.DefaultAsyncHttpx2Client(transport=CassetteTransport(cassette))
    client = instructor.from_openai(openai.AsyncOpenAI(http_client=http or None))
    parts = client.create_partial(response_model=Forecast, **_asked(system))
    grown = [part.city async for part in parts]
    found, completion = await client.create_with_completion(response_model=ForecastForOslo, **_asked(system))
    return [grown[-1], found.city, completion.usage.total_tokens]
