"""Whole trials in place of slices: one arm's server at a time. Pure."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.experiments.experiment import Design, DesignKind

_TRIAL_S = 10.0


def alternating(design: Design, trial_s: float | None = None) -> Design:
    """Return the design with whole trials instead of slices: one arm's server at a time."""
    length_s = _TRIAL_S if trial_s is None else trial_s
    return replace(
        design,
        kind=DesignKind.ALTERNATING,
        slice_s=length_s,
        writing_slice_s=None,
        block_s=length_s,
        blocks_per_round=1,
        head_s=length_s / 20,
        stretch_s=0.0,  # every trial has its server alone
    )


def in_trials(design: Design) -> Design:
    """Return the design for variants found to need whole trials.

    Trials last as long as requested blocks.
    """
    return alternating(design, None if design.block_s == Design().block_s else design.block_s)
