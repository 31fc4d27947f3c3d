"""The inputs that ``tests/fuzz`` starts from pass its checks, on machines without atheris, too."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from tests.fuzz.__main__ import TARGETS

CHECKS = {name: importlib.import_module(f"tests.fuzz.{name}") for name in TARGETS}


@pytest.mark.parametrize(
    ("check", "seed"),
    [
        pytest.param(target.check, seed, id=f"{name}-{number}")
        for name, target in CHECKS.items()
        for number, seed in enumerate(target.SEEDS)
    ],
)
def test_a_seed_passes_the_check_of_its_target(check: Callable[[bytes], None], seed: bytes) -> None:
    """What must hold for any input holds for those that the search starts from."""
    check(seed)
