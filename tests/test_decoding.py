"""Content encodings are undone piece by piece, as the client undoes them, and never without a limit."""

from __future__ import annotations

import gzip
import sys
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import brotli
import pytest
import zstandard

from httpx_cassette import _decoding
from httpx_cassette._decoding import BodyTooLarge, Decoder, make_decoder

TEXT = "data: Grüße, 世界\n\n".encode() * 40


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "x-unknown": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
    "zstd, identity, deflate": lambda data: zlib.compress(zstandard.compress(data)),
}


def undo(decoder: Decoder, data: bytes, size: int) -> bytes:
    """Feed data in chunks of a size."""
    return b"".join(decoder.feed(data[start : start + size]) for start in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 64, 10**9])
@pytest.mark.parametrize("encoding", PACKERS)
def test_what_was_packed_comes_out_at_every_cut(encoding: str, size: int) -> None:
    """The end of the encoding is seen with its last byte, and not before."""
    packed = PACKERS[encoding](TEXT)
    decoder = make_decoder(encoding)
    before = undo(decoder, packed[:-1], size)

    assert (packed == TEXT) is decoder.is_finished
    assert TEXT == before + decoder.feed(packed[-1:])
    assert decoder.is_finished


def test_raw_deflate_is_taken_for_deflate() -> None:
    """Servers send it under that name, and clients bear it."""
    decoder = make_decoder("deflate")

    assert TEXT == decoder.feed(raw_deflate(TEXT))
    assert decoder.is_finished


def test_frames_of_zstandard_follow_one_another() -> None:
    """A server may flush by ending a frame; httpx reads on, and so does what is stored."""
    frames = [zstandard.compress(TEXT), zstandard.compress(b"more")]

    assert TEXT + b"more" == make_decoder("zstd").feed(b"".join(frames))
    decoder = make_decoder("zstd")
    assert [TEXT, b"more"] == [decoder.feed(frame) for frame in frames]


def flushed(encoding: str) -> Iterator[bytes]:
    """Yield two pieces, each flushed by the server as soon as it had it."""
    packer: Any
    if encoding == "br":
        packer = brotli.Compressor()
        for piece in (b"one", b"two"):
            yield packer.process(piece) + packer.flush()
        return
    if encoding == "zstd":
        packer, flush = zstandard.ZstdCompressor().compressobj(), zstandard.COMPRESSOBJ_FLUSH_BLOCK
    else:
        packer, flush = zlib.compressobj(wbits=zlib.MAX_WBITS | 16), zlib.Z_SYNC_FLUSH
    for piece in (b"one", b"two"):
        yield packer.compress(piece) + packer.flush(flush)


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_a_token_comes_out_with_the_chunk_that_carries_it(encoding: str) -> None:
    """The end of a stream is recognised in time, although the encoding itself goes on."""
    decoder = make_decoder(encoding)

    assert [b"one", b"two"] == [decoder.feed(chunk) for chunk in flushed(encoding)]
    assert not decoder.is_finished


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_bytes_that_are_not_what_the_header_says_are_named(encoding: str) -> None:
    """One kind of error, whichever library found it."""
    with pytest.raises(ValueError, match="not what its content-encoding says"):
        make_decoder(encoding).feed(b"\xff\xff plainly nothing packed")


def test_deflate_that_breaks_at_its_end_is_not_taken_for_raw() -> None:
    """The other way of reading it is tried at the beginning alone."""
    decoder = make_decoder("deflate")
    packed = zlib.compress(TEXT)
    decoder.feed(packed[:-1])
    with pytest.raises(ValueError, match="not what its content-encoding says"):
        decoder.feed(bytes([packed[-1] ^ 1]))


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_not_unpacked_to_its_end(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes that say gigabytes are given up on at the limit."""
    monkeypatch.setattr(_decoding, "MAX_BODY", 100_000)
    bomb = PACKERS[encoding](bytes(3_000_000))
    with pytest.raises(BodyTooLarge):
        make_decoder(encoding).feed(bomb)
    assert bytes(90_000) == make_decoder(encoding).feed(PACKERS[encoding](bytes(90_000)))


# --- the libraries that a client may have ------------------------------------------------------------


class _OldBrotli:
    """Brotli before 1.2: no limit on what a call gives back."""

    error = brotli.error

    class Decompressor:
        def __init__(self) -> None:
            self._engine = brotli.Decompressor()
            self.process = self._engine.process
            self.is_finished = self._engine.is_finished


class _NewZstandard:
    """``compression.zstd`` of Python 3.14, and its backport: the decompressor is the object itself."""

    ZstdError = zstandard.ZstdError

    class ZstdDecompressor:
        def __init__(self) -> None:
            self._engine = zstandard.ZstdDecompressor().decompressobj()
            self.decompress = self._engine.decompress

        @property
        def eof(self) -> bool:
            return self._engine.eof

        @property
        def unused_data(self) -> bytes:
            return self._engine.unused_data


def module(name: str, source: type) -> types.ModuleType:
    """Return a module with the members of a class."""
    made = types.ModuleType(name)
    made.__dict__.update({key: value for key, value in vars(source).items() if key[:2] != "__"})
    return made


@pytest.mark.parametrize(
    ("encoding", "missing", "present"),
    [
        ("br", ["brotli"], module("brotlicffi", _OldBrotli)),
        ("zstd", ["zstandard"], module("compression.zstd", _NewZstandard)),
        ("zstd", ["zstandard", "compression.zstd"], module("backports.zstd", _NewZstandard)),
    ],
    ids=["brotlicffi", "compression.zstd", "backports.zstd"],
)
def test_whatever_the_client_decodes_with_will_do(
    encoding: str, missing: list[str], present: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Httpx and httpx2 use different libraries for the same encoding."""
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    parent = present.__name__.rpartition(".")[0]
    if parent:
        monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
    monkeypatch.setitem(sys.modules, present.__name__, present)
    decoder = make_decoder(encoding)

    assert TEXT == undo(decoder, PACKERS[encoding](TEXT), 7)
    assert decoder.is_finished
    monkeypatch.setattr(_decoding, "MAX_BODY", 10)
    with pytest.raises(BodyTooLarge):
        make_decoder(encoding).feed(PACKERS[encoding](TEXT))


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_an_encoding_that_the_client_cannot_undo_is_left_alone(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client hands the bytes on as they are, and so they are stored."""
    for name in ("brotli", "brotlicffi", "zstandard", "compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    packed = PACKERS[encoding](TEXT)

    assert packed == make_decoder(encoding).feed(packed)
