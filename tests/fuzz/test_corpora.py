"""The kept inputs of each fuzz target, checked once more; `make fuzz` finds new ones."""

from __future__ import annotations

import pytest
from tests.fuzz.targets import CORPORA, TARGETS

MOST_BYTES = 800_000  # of all corpora, Rust's included: they are for people to keep
RUST = CORPORA.parents[2] / "driver" / "fuzz" / "corpora"


@pytest.mark.parametrize("target", TARGETS)
def test_every_kept_input_is_read_or_refused_in_words(target: str) -> None:
    inputs = sorted((CORPORA / target).iterdir())
    assert inputs
    for path in inputs:
        print(path)  # noqa: T201 — shown with a failure
        TARGETS[target](path.read_bytes())


def test_corpora_are_small() -> None:
    sizes = [path.stat().st_size for root in (CORPORA, RUST) for path in root.rglob("*") if path.is_file()]
    assert 0 < sum(sizes) < MOST_BYTES
