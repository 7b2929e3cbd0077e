"""All findings on a curve: levels, knee, decline, number of peaks, scaling law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgdyno.model.experiments.scaling import Scaling
from pgdyno.stats.curves import knee
from pgdyno.stats.curves.curve import Curve
from pgdyno.stats.curves.scaling_law import fit_laws, simplest

Blocks = Sequence[Mapping[int, float]]
"""Rates by level, block by block."""


def observe(
    blocks: Blocks, *, offset: int = 0, tolerance: float = knee.TOLERANCE, level: float = knee.LEVEL
) -> Scaling:
    """Return all findings except the laws, quickly: for a search between its blocks.

    Levels with too few blocks are described, but not used for the findings.
    Raises: ValueError as ``Curve.of``.
    """
    whole = Curve.of(blocks)
    curve = whole.compared
    best = int(curve.levels[knee.best(curve)])
    return Scaling(
        levels=knee.describe(whole, best, offset=offset, level=level),
        best=best,
        knee=knee.find_knee(curve, tolerance=tolerance, level=level),
        worse_from=knee.worse_from(curve, level=level),
        dips=knee.find_dips(curve, level=level),
        laws=(),
        law=None,
    )


def analyse(
    blocks: Blocks, *, offset: int = 0, tolerance: float = knee.TOLERANCE, level: float = knee.LEVEL
) -> Scaling:
    """Return all findings about blocks of rates; fitting the laws to resampled blocks takes seconds.

    ``offset``: the number of processes at level 0, 1 for workers with a participating leader.
    Raises: ValueError as ``Curve.of``.
    """
    observed = observe(blocks, offset=offset, tolerance=tolerance, level=level)
    laws = fit_laws(Curve.of(blocks).compared, offset=offset, level=level)
    return replace(observed, laws=laws, law=simplest(laws) if observed.is_unimodal else None)
