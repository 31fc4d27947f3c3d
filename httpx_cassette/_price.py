"""What the recorded answers would have cost, by the price table of genai-prices (extra ``cost``).

A model that the table does not know has no price here: one is never guessed. The table is the one that was
installed; nothing is fetched.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ._usage import Usage

__all__ = ["PriceTable", "price_table"]

#: How the addresses end at which texts become vectors: no answer there has tokens of its own.
_EMBEDDINGS = ("/embeddings", "/embed", ":embedContent", ":batchEmbedContents")


class PriceTable:
    """The prices that are installed.

    Args:
        module: The module ``genai_prices``.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    @property
    def name(self) -> str:
        """The package, its version, and the date of the newest price in force."""
        newest = max(self._dates(), default=None)
        dated = "" if newest is None else f", newest price of {newest.isoformat()}"
        return f"genai-prices {self._module.__version__}{dated}"

    def cost(self, usage: Usage, at: str) -> Decimal | None:
        """Return the price of one answer in US dollars, ``None`` where it is not known.

        Args:
            usage: The tokens.
            at: When the answer was given, RFC 3339; prices change.
        """
        output = 0 if usage.output_tokens is None and _is_embedding(usage) else usage.output_tokens
        if usage.input_tokens is None or output is None or not usage.model:
            return None
        tokens = self._module.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=output,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.written_tokens,
            cache_write_1h_tokens=usage.written_1h_tokens,
        )
        try:
            # Refused, where the cache is said to have more tokens than the prompt.
            found = self._module.calc_price(
                tokens,
                usage.model,
                provider_api_url=usage.url,
                genai_request_timestamp=_time(at),
            )
        except (LookupError, ValueError):
            return None
        price: Decimal = found.total_price
        return price

    def _dates(self) -> Iterator[datetime.date]:
        """Yield since when each price is in force that is; the table itself has no date."""
        today = datetime.date.today()
        snapshot = self._module.data_snapshot.get_snapshot()
        for provider in snapshot.providers:
            for model in provider.models:
                for price in model.prices if isinstance(model.prices, list) else ():
                    start = getattr(price.constraint, "start_date", None)
                    if isinstance(start, datetime.date) and start <= today:
                        yield start


def price_table() -> PriceTable | None:
    """Return the prices, ``None`` where the extra is not installed."""
    try:
        import genai_prices
    except ImportError:
        return None
    return PriceTable(genai_prices)


def _is_embedding(usage: Usage) -> bool:
    return usage.url.rstrip("/").endswith(_EMBEDDINGS)


def _time(at: str) -> datetime.datetime:
    # ``Z`` is not read before Python 3.11.
    time = datetime.datetime.fromisoformat(at.replace("Z", "+00:00"))
    return time if time.tzinfo is not None else time.replace(tzinfo=datetime.timezone.utc)
