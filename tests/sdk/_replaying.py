"""What every SDK's talks must show, whatever they ask: recorded once, replayed without the server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from httpx_cassette.stand_in import StandInServer


async def check_replayed(sdk: Any, server: StandInServer, talk: Any) -> None:
    """Check that a talk of an SDK says when replayed what it said when recorded, and sends nothing."""
    async with sdk.client("record") as client:
        recorded = await talk(sdk, client)
        # What is there is not asked for again.
        again = await talk(sdk, client)
    server.close()
    replayed = []
    for options in ({"chunk_size": 3}, {"noise": True, "wire_chunk_size": 5}):
        async with sdk.client("replay", **options) as client:
            replayed.append(await talk(sdk, client))

    assert [recorded] * 3 == [again, *replayed]
    assert 0 == sdk.transport.stats.live


async def check_replayed_as_a_whole(
    sdk: Any, server: StandInServer, talks: Sequence[Any]
) -> list[dict[str, Any]]:
    """Check talks that share a cassette, replayed backwards; return the recordings, a line each."""
    async with sdk.client("record") as client:
        recorded = [await talk(sdk, client) for talk in talks]
    server.close()
    async with sdk.client("replay") as client:
        replayed = [await talk(sdk, client) for talk in reversed(talks)]

    assert recorded == replayed[::-1]
    return [json.loads(line) for line in sdk.cassette.read_bytes().splitlines()]
