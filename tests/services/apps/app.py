"""A service that sorts support tickets: all requests ask the model over one client."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
from fastapi import Depends, FastAPI, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

SYSTEM = "You sort support tickets into: billing, bug, other."


class Ticket(BaseModel):
    text: str


class Answer(BaseModel):
    text: str


def transport() -> httpx.AsyncBaseTransport | None:
    """Give the transport that the setting asks for; ``None`` is httpx's own."""
    if cassette := os.environ.get("TRIAGE_CASSETTE"):
        from httpx_cassette import CassetteTransport

        return CassetteTransport(cassette)
    return None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the one client in the process that serves, and close it at the end."""
    async with httpx.AsyncClient(
        transport=transport(),
        base_url=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        headers={"authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'not needed to replay')}"},
        timeout=60,
    ) as app.state.model:
        yield


app = FastAPI(lifespan=lifespan)


def model(request: Request) -> httpx.AsyncClient:
    """Give the client that all requests share."""
    client: httpx.AsyncClient = request.app.state.model
    return client


Model = Annotated[httpx.AsyncClient, Depends(model)]


def asked(ticket: Ticket) -> dict[str, object]:
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
    answer = await model.post("/chat/completions", json=asked(ticket))
    answer.raise_for_status()
    return Answer(text=answer.json()["choices"][0]["message"]["content"])


async def opened(ticket: Ticket, model: Model) -> AsyncIterator[httpx.Response]:
    """Open the model's stream before our own answer begins, and close it after, however that ends.

    What fails here is still a status code for the client; what fails in the middle of a stream is not.
    """
    body = {**asked(ticket), "stream": True}
    async with model.stream("POST", "/chat/completions", json=body) as answer:
        answer.raise_for_status()
        yield answer


async def tokens(answer: httpx.Response) -> AsyncIterator[str]:
    """Give the text of a stream as it comes."""
    async for line in answer.aiter_lines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                yield choice["delta"].get("content") or ""


@app.post("/triage/stream")
async def triage_stream(answer: Annotated[httpx.Response, Depends(opened)]) -> StreamingResponse:
    return StreamingResponse(tokens(answer), media_type="text/plain")
