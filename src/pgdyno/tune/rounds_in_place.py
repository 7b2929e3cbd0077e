"""Rounds of a search on a running server: whole trials, one configuration after the other."""

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

_LOOK_S = 1.0  # how often a limit is looked at


class IncumbentOverLimitError(Exception):
    """The best configuration so far went over a limit: it is not the best any more."""


def design_in_place(design: Design, limits: OwnerLimits) -> Design:
    """Return the design with whole trials; with limits, of short turns, after which these are looked at."""
    trials = replace(in_trials(design), is_isolated=False)
    if not limits.is_any:
        return trials
    turn_s = min(_LOOK_S, trials.block_s)
    return replace(trials, slice_s=turn_s, head_s=turn_s / 20)


def taken_as_they_are(blocks: Sequence[Block]) -> tuple[list[Block], bool]:
    """Return blocks as if nothing had disturbed them, and whether something has.

    A server with work of its own disturbs every round: to repeat them would double the load and the restarts.
    """
    counted = [
        replace(block, void=None, arms=tuple(replace(arm, void=None) for arm in block.arms))
        for block in blocks
    ]
    return counted, any(block.void_reasons for block in blocks)


@dataclass
class RoundsInPlace(TrialRounds):
    """Measures rounds on a running server, and puts its values back as soon as a limit is passed.

    ``restore`` does that.
    """

    restore: Callable[[], None] = field(kw_only=True)
    _over_limit: dict[frozenset[tuple[str, str]], str] = field(default_factory=dict, init=False)

    def require_found_within_limits(self) -> None:
        """Refuse to search on a server that is over a limit without any change. Raises: RefusedError."""
        try:
            self._round([replace(self.base, name=CANDIDATE)])
        except OverLimitError as error:
            raise RefusedError(
                "the server goes over a limit as it was found, under this load",
                detail=error.reason,
                hint="give it more room, or choose a lighter workload",
            ) from error

    def why_not(self, otherwise: WhyNot) -> WhyNot:
        """Return the question why a point must not be tried: it went over a limit, or ``otherwise``."""
        return lambda point: self._over_limit.get(self._whole(point), "") or otherwise(point)

    def went_over(self, point: Point, reason: str) -> None:
        """Take note of a point that went over a limit; it may be whole already."""
        self._over_limit[self._whole(point)] = reason

    def _whole(self, point: Point) -> frozenset[tuple[str, str]]:
        return frozenset(self.settled(point).items())

    def _blocks(self, variants: Sequence[Variant]) -> list[Block]:
        """Return the blocks of one round. It is not repeated, however much else the server had to do."""
        blocks, is_disturbed = taken_as_they_are(super()._blocks(variants))
        self.disturbed += is_disturbed
        return blocks

    def _beside(self, others: Mapping[str, Variant], candidate: Point) -> Counted:
        try:
            return super()._beside(others, candidate)
        except OverLimitError as error:
            self.restore()
            self.arena.loads.forget("tune")
            if error.variant == INCUMBENT:
                raise IncumbentOverLimitError(error.reason) from error
            self.went_over(candidate, error.reason)
            raise CandidateOverLimitError(error.reason) from error
