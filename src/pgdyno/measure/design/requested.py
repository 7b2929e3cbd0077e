"""The requested design: a study's usual design with the user's choices. Pure."""

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
_NARROWEST = 1.96 * DUET_BIAS  # the smallest half-width, for any number of rounds
_FINEST = 0.015  # precision that a realistic number of rounds reaches
_MAXIMUM_ROUNDS = 200  # bound for stopping rules; arbitrary


@dataclass(frozen=True)
class RequestedDesign:
    """The user's choices for a design; None: not given, as in the usual design."""

    seed: int
    clients: int
    blocks: int | None = None  # in total
    block_s: float | None = None
    slice_s: float | None = None
    is_alternating: bool = False
    is_isolated: bool | None = None
    phase: Phase = Phase.AFTER_CHECKPOINT
    until: str | None = None  # "decided", or "precision=2%"


def design_of(usual: Design, requested: RequestedDesign) -> Design:
    """Return the usual design with the user's choices.

    Raises: UsageError for ``until``.
    """
    slice_s = usual.slice_s if requested.slice_s is None else requested.slice_s
    is_short = requested.slice_s is not None and slice_s < WRITING_SLICE_S
    design = replace(
        usual,
        slice_s=slice_s,
        # A requested length that is long enough for write workloads needs no separate one.
        writing_slice_s=slice_s if is_short else usual.writing_slice_s,
        head_s=min(usual.head_s, slice_s / 5),
        seed=requested.seed,
        clients=requested.clients,
        phase=requested.phase,
        is_isolated=usual.is_isolated if requested.is_isolated is None else requested.is_isolated,
    )
    if requested.block_s is not None:
        design = replace(design, block_s=requested.block_s, warmup_s=min(design.warmup_s, requested.block_s))
    if requested.is_alternating:
        design = alternating(design, requested.block_s)
    if requested.blocks is not None:
        # A verdict needs several rounds; few blocks are therefore spread over as many rounds.
        per_round = design.blocks_per_round if requested.blocks >= _BLOCKS_FOR_TWO_A_ROUND else 1
        design = replace(design, rounds=math.ceil(requested.blocks / per_round), blocks_per_round=per_round)
    return _with_stopping(design, requested.until)


def require_reachable(design: Design) -> None:
    """Raise UsageError for a precision that a duet can hardly reach, because of its bias."""
    bias = design.with_bias().bias
    if design.precision is not None and bias and design.precision < _FINEST:
        raise UsageError(
            f"--until precision={100 * design.precision:g}% is too fine for servers measured together",
            detail=f"even two identical servers differ by about {numbers.share(bias, 1)} throughout an "
            f"experiment, so no interval is narrower than ±{numbers.share(_NARROWEST, 1)}",
            hint=f"write --until precision={100 * _FINEST:g}%, or add --design alternating",
        )


def in_passes(design: Design, passes: int | None, clients: int) -> Design:
    """Return the design for steps, which run in whole passes of one arm; ``passes`` None: as usual."""
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
    raise UsageError(f'invalid --until "{until}"', hint="write --until decided or --until precision=2%")
