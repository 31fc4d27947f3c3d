"""The same service on the openai SDK."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import openai
from fastapi import Depends, FastAPI, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

SYSTEM = "You sort support tickets into: billing, bug, other."


class Ticket(BaseModel):
    text: str


class Answer(BaseModel):
    text: str


def http_client() -> Any:
    """Give the client that the setting asks for; ``None`` is the SDK's own."""
    if cassette := os.environ.get("TRIAGE_CASSETTE"):
        from httpx_cassette.httpx2 import CassetteTransport

        return openai.DefaultAsyncHttpx2Client(transport=CassetteTransport(cassette))
    return None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the one client in the process that serves, and close it at the end."""
    async with openai.AsyncOpenAI(
        api_key=os.environ.get("OPENAI_API_KEY", "not needed to replay"),
        http_client=http_client(),
    ) as app.state.model:
        yield


app = FastAPI(lifespan=lifespan)


def model(request: Request) -> openai.AsyncOpenAI:
    """Give the client that all requests share."""
    client: openai.AsyncOpenAI = request.app.state.model
    return client


Model = Annotated[openai.AsyncOpenAI, Depends(model)]


def asked(ticket: Ticket) -> dict[str, Any]:
    """Return what the model is asked."""
    return {
        "model": "gpt-4o-mini",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": ticket.text},
        ],
    }


@app.get("/health")
async def health() -> str:
    return "ok"


@app.post("/triage")
async def triage(ticket: Ticket, model: Model) -> Answer:
    answer = await model.chat.completions.create(**asked(ticket))
    return Answer(text=answer.choices[0].message.content or "")


async def opened(ticket: Ticket, model: Model) -> AsyncIterator[Any]:
    """Open the model's stream before our own answer begins, and close it after, however that ends."""
    async with await model.chat.completions.create(**asked(ticket), stream=True) as answer:
        yield answer


async def tokens(answer: Any) -> AsyncIterator[str]:
    """Give the text of a stream as it comes."""
    async for event in answer:
        for choice in event.choices:
            yield choice.delta.content or ""


@app.post("/triage/stream")
async def triage_stream(answer: Annotated[Any, Depends(opened)]) -> StreamingResponse:
    return StreamingResponse(tokens(answer), media_type="text/plain")
