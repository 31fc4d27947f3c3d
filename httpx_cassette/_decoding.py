"""Content encodings undone while a body passes, with a limit on what comes out.

The caller of a recording client gets the bytes as they were sent; what is stored is what they say.
A token that was flushed by the server comes out with the chunk that carries it, so that the end of a stream
is recognised in time.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from ._request import MAX_BODY

__all__ = ["BodyTooLarge", "Decoder", "make_decoder"]


class BodyTooLarge(Exception):
    """A body grew past the limit; it goes on to the caller and is not stored."""


class Decoder(Protocol):
    """Undoes a content encoding piece by piece."""

    @property
    def is_finished(self) -> bool:
        """Whether the encoding's own end has come."""

    def feed(self, chunk: bytes) -> bytes:
        """Return what the chunk says.

        Raises:
            BodyTooLarge: More came out than is stored.
            ValueError: The bytes are not what the header says.
        """


class _Identity:
    is_finished = True

    def feed(self, chunk: bytes) -> bytes:
        return chunk


class _Zlib:
    """gzip and deflate (RFC 9110 section 8.4.1); raw deflate too, which servers send under its name."""

    def __init__(self, window: int) -> None:
        self._inflate = zlib.decompressobj(window)
        self._may_be_raw = window == zlib.MAX_WBITS

    @property
    def is_finished(self) -> bool:
        return self._inflate.eof

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


class _Brotli:
    """Brotli, with the library that the client decodes with."""

    def __init__(self, brotli: Any) -> None:
        self._engine = brotli.Decompressor()
        self._fault = brotli.error

    @property
    def is_finished(self) -> bool:
        return bool(self._engine.is_finished())

    def feed(self, chunk: bytes) -> bytes:
        try:
            data = self._decompress(chunk)
        except self._fault as error:
            raise ValueError(f"not what its content-encoding says: {error}") from error
        if len(data) > MAX_BODY:
            raise BodyTooLarge
        return data

    def _decompress(self, chunk: bytes) -> bytes:
        if hasattr(self._engine, "can_accept_more_data"):
            # Since Brotli 1.2; before, one call gave back whatever its bytes had grown to.
            data: bytes = self._engine.process(chunk, output_buffer_limit=MAX_BODY + 1)
        else:
            data = self._engine.process(chunk)
        return data


class _Zstandard:
    """Zstandard, in frames one behind the other."""

    def __init__(self, begin: Callable[[], Any], fault: type[Exception]) -> None:
        self._begin = begin
        self._frame = begin()
        self._fault = fault

    @property
    def is_finished(self) -> bool:
        return bool(self._frame.eof)

    def feed(self, chunk: bytes) -> bytes:
        pieces, size = [], 0
        # Small bites: there is no limit on what one call gives back, and a block of four bytes says 128 KiB.
        for start in range(0, len(chunk), _BITE):
            rest = chunk[start : start + _BITE]
            while rest:
                piece, rest = self._decompress(rest)
                pieces.append(piece)
                size += len(piece)
                if size > MAX_BODY:
                    raise BodyTooLarge
        return b"".join(pieces)

    def _decompress(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what the data say, and what of them belongs to the next frame."""
        if self._frame.eof:
            self._frame = self._begin()
        try:
            piece: bytes = self._frame.decompress(data)
        except self._fault as error:
            raise ValueError(f"not what its content-encoding says: {error}") from error
        return piece, self._frame.unused_data if self._frame.eof else b""


_BITE = 1024


class _Several:
    """Encodings applied one after another, undone from the last."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    @property
    def is_finished(self) -> bool:
        return all(decoder.is_finished for decoder in self._decoders)

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
    module = _first_installed("brotli", "brotlicffi")
    return None if module is None else _Brotli(module)


def _zstandard() -> Decoder | None:
    # httpx decodes with the first of these, httpx2 with the others.
    module = _first_installed("zstandard", "compression.zstd", "backports.zstd")
    if module is None:
        return None
    begin = getattr(module.ZstdDecompressor(), "decompressobj", None) or module.ZstdDecompressor
    return _Zstandard(begin, module.ZstdError)


def _first_installed(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
