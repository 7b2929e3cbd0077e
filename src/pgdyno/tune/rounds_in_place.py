"""Rounds of a search on a running server: whole trials, one configuration at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.base.errors import RefusedError
from pgdyno.measure.design.schedule import in_trials
from pgdyno.model.experiments.experiment import Block, Design
from pgdyno.model.tuning.limits import OverLimitError, OwnerLimits
from pgdyno.model.tuning.space import Point
from pgdyno.model.variants.variant import Variant
from pgdyno.tune.search.searching import CandidateOverLimitError, WhyNot
from pgdyno.tune.trial_rounds import CANDIDATE, INCUMBENT, Counted, TrialRounds

_CHECK_S = 1.0  # interval of checking the limits


class IncumbentOverLimitError(Exception):
    """The best configuration so far exceeded a limit: it is no longer the best."""


def design_in_place(design: Design, limits: OwnerLimits) -> Design:
    """Return the design with whole trials; with limits, in short turns, each followed by a check of them."""
    trials = replace(in_trials(design), is_isolated=False)
    if not limits.is_any:
        return trials
    turn_s = min(_CHECK_S, trials.block_s)
    return replace(trials, slice_s=turn_s, head_s=turn_s / 20)


def as_valid(blocks: Sequence[Block]) -> tuple[list[Block], bool]:
    """Return all blocks as valid, and whether any of them was disturbed.

    A server's own work disturbs every round: repeating rounds would double the load and the restarts.
    """
    counted = [
        replace(block, void=None, arms=tuple(replace(arm, void=None) for arm in block.arms))
        for block in blocks
    ]
    return counted, any(block.void_reasons for block in blocks)


@dataclass
class RoundsInPlace(TrialRounds):
    """Measures rounds on a running server. ``restore`` restores its values as soon as a limit is exceeded."""

    restore: Callable[[], None] = field(kw_only=True)
    _over_limit: dict[frozenset[tuple[str, str]], str] = field(default_factory=dict, init=False)

    def require_found_within_limits(self) -> None:
        """Refuse a server that exceeds a limit without any change. Raises: RefusedError."""
        try:
            self._round([replace(self.base, name=CANDIDATE)])
        except OverLimitError as error:
            raise RefusedError(
                "the server exceeds a limit in its original configuration, under this load",
                detail=error.reason,
                hint="raise the limit, or choose a lighter workload",
            ) from error

    def why_not(self, otherwise: WhyNot) -> WhyNot:
        """Return a function for the reason not to try a point: it exceeded a limit, or ``otherwise``."""
        return lambda point: self._over_limit.get(self._whole(point), "") or otherwise(point)

    def record_over_limit(self, point: Point, reason: str) -> None:
        """Record a point that exceeded a limit; it may include the kept values already."""
        self._over_limit[self._whole(point)] = reason

    def _whole(self, point: Point) -> frozenset[tuple[str, str]]:
        return frozenset(self.settled(point).items())

    def _blocks(self, variants: Sequence[Variant]) -> list[Block]:
        """Return the blocks of one round. It is not repeated, even if the server's own work disturbed it."""
        blocks, is_disturbed = as_valid(super()._blocks(variants))
        self.disturbed += is_disturbed
        return blocks

    def _compared(self, others: Mapping[str, Variant], candidate: Point) -> Counted:
        try:
            return super()._compared(others, candidate)
        except OverLimitError as error:
            self.restore()
            self.arena.loads.forget("tune")
            if error.variant == INCUMBENT:
                raise IncumbentOverLimitError(error.reason) from error
            self.record_over_limit(candidate, error.reason)
            raise CandidateOverLimitError(error.reason) from error
