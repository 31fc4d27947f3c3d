"""Content encodings undone while a body passes, with a limit on what comes out.

The caller of a recording client gets the bytes as they were sent; what is stored is what they say.
A token that was flushed by the server comes out with the chunk that carries it, so that the end of a stream
is recognised in time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Protocol

from ._request import MAX_BODY

__all__ = ["BodyTooLarge", "Decoder", "make_decoder"]


class BodyTooLarge(Exception):
    """A body grew past the limit; it goes on to the caller and is not stored."""


class Decoder(Protocol):
    """Undoes a content encoding piece by piece."""

    def feed(self, chunk: bytes) -> bytes:
        """Return what the chunk says.

        Raises:
            BodyTooLarge: More came out than is stored.
            ValueError: The bytes are not what the header says.
        """


class _Identity:
    def feed(self, chunk: bytes) -> bytes:
        return chunk


class _Zlib:
    """gzip and deflate (RFC 9110 section 8.4.1); raw deflate too, which servers send under its name."""

    def __init__(self, window: int) -> None:
        self._inflate = zlib.decompressobj(window)
        self._may_be_raw = window == zlib.MAX_WBITS

    def feed(self, chunk: bytes) -> bytes:
        try:
            data = self._inflate.decompress(chunk, MAX_BODY)
        except zlib.error as error:
            if not self._may_be_raw:
                raise ValueError(f"not what its content-encoding says: {error}") from error
            self._may_be_raw = False
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self.feed(chunk)
        if self._inflate.unconsumed_tail:
            raise BodyTooLarge
        self._may_be_raw = False
        return data


class _Library:
    """Brotli and Zstandard, with the library that the client decodes with."""

    def __init__(self, decompress: Callable[[bytes], bytes], fault: type[Exception]) -> None:
        self._decompress = decompress
        self._fault = fault

    def feed(self, chunk: bytes) -> bytes:
        pieces, size = [], 0
        # Small bites: these libraries have no limit on what one call gives back.
        for start in range(0, len(chunk), _BITE):
            try:
                piece = self._decompress(chunk[start : start + _BITE])
            except self._fault as error:
                raise ValueError(f"not what its content-encoding says: {error}") from error
            pieces.append(piece)
            size += len(piece)
            if size > MAX_BODY:
                raise BodyTooLarge
        return b"".join(pieces)


_BITE = 1024


class _Several:
    """Encodings applied one after another, undone from the last."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, chunk: bytes) -> bytes:
        for decoder in self._decoders:
            chunk = decoder.feed(chunk)
        return chunk


def make_decoder(content_encoding: str) -> Decoder:
    """Return what undoes a ``content-encoding``; an encoding that the client ignores is ignored here too.

    Args:
        content_encoding: The value of the header, empty where there is none.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    decoders = [decoder for decoder in map(_decoder, reversed(names)) if decoder is not None]
    if not decoders:
        return _Identity()
    return decoders[0] if len(decoders) == 1 else _Several(decoders)


def _decoder(name: str) -> Decoder | None:
    if name in ("gzip", "x-gzip"):
        return _Zlib(zlib.MAX_WBITS | 16)
    if name == "deflate":
        return _Zlib(zlib.MAX_WBITS)
    if name == "br":
        return _brotli()
    if name == "zstd":
        return _zstandard()
    return None


def _brotli() -> Decoder | None:
    # The client asked for it only where one of these is installed, and decodes with it.
    brotli: Any
    try:
        import brotli
    except ImportError:
        try:
            import brotlicffi as brotli
        except ImportError:
            return None
    engine = brotli.Decompressor()
    return _Library(getattr(engine, "decompress", None) or engine.process, brotli.error)


def _zstandard() -> Decoder | None:
    zstandard: Any
    try:
        import zstandard
    except ImportError:
        try:
            from compression import zstd
        except ImportError:
            return None
        return _Library(zstd.ZstdDecompressor().decompress, zstd.ZstdError)
    return _Library(zstandard.ZstdDecompressor().decompressobj().decompress, zstandard.ZstdError)
