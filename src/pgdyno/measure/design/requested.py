"""The requested design: the user's choices on top of a study's usual design. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.base.units import parse_percent
from pgdyno.measure.design.schedule import alternating
from pgdyno.model.experiments.experiment import DUET_BIAS, WRITING_SLICE_S, Design, Phase, Stopping

_PASSES = 5  # the fewest that a verdict needs
_BLOCKS_FOR_TWO_A_ROUND = 12
_NARROWEST = 1.96 * DUET_BIAS  # half-width, however many rounds there are
_FINEST = 0.015  # that rounds can be expected to reach
_MAXIMUM_ROUNDS = 200  # bound on an experiment that waits for a decision; arbitrary


@dataclass(frozen=True)
class RequestedDesign:
    """The user's choices for a design; None: not given, the usual design applies."""

    seed: int
    clients: int
    blocks: int | None = None  # in all
    block_s: float | None = None
    slice_s: float | None = None
    is_alternating: bool = False
    is_isolated: bool | None = None
    phase: Phase = Phase.AFTER_CHECKPOINT
    until: str | None = None  # "decided", or "precision=2%"


def design_of(usual: Design, asked: RequestedDesign) -> Design:
    """Return the usual design with the user's choices.

    Raises: UsageError for ``until``.
    """
    slice_s = usual.slice_s if asked.slice_s is None else asked.slice_s
    is_short = asked.slice_s is not None and slice_s < WRITING_SLICE_S
    design = replace(
        usual,
        slice_s=slice_s,
        # One that is long enough for writing workloads is theirs by itself.
        writing_slice_s=slice_s if is_short else usual.writing_slice_s,
        head_s=min(usual.head_s, slice_s / 5),
        seed=asked.seed,
        clients=asked.clients,
        phase=asked.phase,
        is_isolated=usual.is_isolated if asked.is_isolated is None else asked.is_isolated,
    )
    if asked.block_s is not None:
        design = replace(design, block_s=asked.block_s, warmup_s=min(design.warmup_s, asked.block_s))
    if asked.is_alternating:
        design = alternating(design, asked.block_s)
    if asked.blocks is not None:
        # A verdict needs several rounds; few blocks are therefore spread over as many rounds.
        per_round = design.blocks_per_round if asked.blocks >= _BLOCKS_FOR_TWO_A_ROUND else 1
        design = replace(design, rounds=math.ceil(asked.blocks / per_round), blocks_per_round=per_round)
    return _with_stopping(design, asked.until)


def require_reachable(design: Design) -> None:
    """Raise UsageError for a precision that hardly any duet reaches: it has a bias of its own."""
    bias = design.with_bias().bias
    if design.precision is not None and bias and design.precision < _FINEST:
        raise UsageError(
            f"--until precision={100 * design.precision:g}% is too fine for servers side by side",
            detail=f"even two equal servers differ by about {numbers.share(bias, 1)} for the length of an "
            f"experiment, so that no interval is narrower than ±{numbers.share(_NARROWEST, 1)}",
            hint=f"write --until precision={100 * _FINEST:g}%, or add --design alternating",
        )


def in_passes(design: Design, passes: int | None, clients: int) -> Design:
    """Return the design for steps, which run in whole passes of one arm each; None: as many as are usual."""
    usual = _PASSES if design.stopping is Stopping.FIXED else design.rounds
    return replace(alternating(design), rounds=usual if passes is None else passes, clients=clients)


def _with_stopping(design: Design, until: str | None) -> Design:
    if until is None:
        return design
    if until == "decided":
        return replace(design, stopping=Stopping.DECIDED, rounds=_MAXIMUM_ROUNDS)
    name, equals, value = until.partition("=")
    if name == "precision" and equals:
        return replace(
            design, stopping=Stopping.PRECISION, precision=parse_percent(value), rounds=_MAXIMUM_ROUNDS
        )
    raise UsageError(f'--until "{until}" is not known', hint="write --until decided or --until precision=2%")
