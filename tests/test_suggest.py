"""An error about a name offers the nearest one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from httpx_cassette._suggest import nearest_name


@pytest.mark.parametrize(
    ("name", "names", "advice"),
    [
        ("samples_", ["samples", "mode"], " (did you mean 'samples'?)"),
        ("keypolicy", {"key_policy": 1}, " (did you mean 'key_policy'?)"),
        ("x", ["b", "a"], "; there are a, b"),
        ("x", (), "; there are "),
        ("dialects", ["mode", "samples"], "; there are mode, samples"),
    ],
)
def test_the_nearest_name_is_offered(name: str, names: Iterable[str], advice: str) -> None:
    """One that is near, else all there are, in order."""
    assert advice == nearest_name(name, names)
