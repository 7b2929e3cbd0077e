"""What rounds are told in tests: whatever else runs is no disturbance, or nothing is started at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pytest

from pgdyno.measure import rounds
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.rounds import Running
from pgdyno.model.experiments.experiment import Block, Design, VoidThresholds
from pgdyno.model.variants.variant import Variant

DESIGN = Design()
WHATEVER_ELSE_RUNS = VoidThresholds(steal_share=1.0, foreign_cpu_share=1.0, schedule_lag_share=1e9)
"""With it every block counts: where a test is about what was done, and not about how fast."""


def measured_by(measure: Callable[..., list[Block]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rounds have their blocks from a function."""
    monkeypatch.setattr(rounds, "_measure", measure)
    monkeypatch.setattr(rounds, "_check_invariant", lambda *_: None)


def running_in(
    arena: object,
    variants: Sequence[Variant] = (Variant("a"),),
    design: Design = DESIGN,
    *,
    announce: Callable[[str], None] = lambda _: None,
    changed: frozenset[str] = frozenset(),
) -> Running:
    """Return what a round in such an arena needs to know; nothing is stored or looked at."""
    return Running(
        experiment_id="e",
        arena=cast("Arena", arena),
        variants=variants,
        design=design,
        meters=(),
        random=np.random.default_rng(1),
        keep_slice=lambda *_: None,
        keep_counts=lambda *_: None,
        look_at=lambda _: None,
        read_durability=lambda _: None,
        announce=announce,
        changed=changed,
    )
