"""The number of rounds of an experiment: the design's, or as many as fit into a budget. Pure.

The number depends on the rounds' duration and on how many are void, never on results: a budget makes no error
more likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.measure.decisions.stopping import (
    as_even,
    minimum_rounds,
    rounds_extended,
    rounds_to_repeat,
    rounds_within,
)
from pgdyno.model.experiments.experiment import STRETCH_ROUNDS, Block
from pgdyno.model.experiments.study import Study


@dataclass(frozen=True)
class RoundPlan:
    """Rounds done and planned; ``after`` returns the plan after one more round.

    ``first`` is the number of rounds done before a resumption. ``repeats`` are extra rounds in place of those
    that do not count. ``stretches_s`` is the extra duration of each of the first rounds, provided that all
    their stretches count. ``look`` is the number of rounds done when enough counted for a verdict; 0 before.
    """

    study: Study
    budget_s: float | None
    first: int
    done: int
    planned: int
    repeats: int = 0
    stretches_s: float = 0.0
    look: int = 0
    longest_s: float = 0.0

    @classmethod
    def of(
        cls, study: Study, budget_s: float | None, done: int = 0, *, stretches_s: float = 0.0
    ) -> RoundPlan:
        """Return the plan before the first round, or before the next of a resumed experiment."""
        planned = study.design.rounds
        return cls(study, budget_s, first=done, done=done, planned=planned, stretches_s=stretches_s)

    @property
    def total(self) -> int:
        """All rounds, including those done."""
        return self.planned + self.repeats

    @property
    def left(self) -> int:
        """Rounds still to run."""
        return max(0, self.total - self.done)

    @property
    def is_look(self) -> bool:
        """Whether the last round is the first after which enough rounds count for a verdict."""
        return 0 < self.look == self.done

    def after(self, round_s: float, elapsed_s: float, blocks: Sequence[Block]) -> RoundPlan:
        """Return the plan after a round that took ``round_s``, at ``elapsed_s`` since the start."""
        plain_s = self._plain_s(round_s, self.done)
        plan = replace(self, done=self.done + 1, longest_s=max(self.longest_s, plain_s))
        if self.budget_s is not None:
            plan = _within(plan, self.budget_s - elapsed_s - plan.stretches_ahead_s, plain_s)
        if not self.study.is_adaptive:  # adaptive studies consider what counts before each round
            plan = _repeating(plan, blocks)
        if self.budget_s is not None and not self.study.is_adaptive:
            plan = _extended(plan, self.budget_s - elapsed_s)
        if not plan.look and _counted(plan, blocks) >= minimum_rounds(self.study.design):
            plan = replace(plan, look=plan.done)
        return plan

    def left_s(self, round_s: float) -> float:
        """Return the estimated duration of the rounds left, after one that took ``round_s``."""
        return self.left * self._plain_s(round_s, self.done - 1) + self.stretches_ahead_s

    def _plain_s(self, round_s: float, round_index: int) -> float:
        """Return the duration of a round without its stretches."""
        return max(0.0, round_s - (self.stretches_s if round_index < STRETCH_ROUNDS else 0.0))

    @property
    def stretches_ahead_s(self) -> float:
        """The duration of the stretches left."""
        return self.stretches_s * min(self.left, max(0, STRETCH_ROUNDS - self.done))

    def after_loss(self, blocks: Sequence[Block]) -> RoundPlan:
        """Return the plan after a round that lost a load host; its duration predicts nothing."""
        is_first = self.done == self.first
        plan = replace(self, first=self.first + 1 if is_first else self.first, done=self.done + 1)
        return _repeating(plan, blocks)


def _within(plan: RoundPlan, remaining_s: float, round_s: float) -> RoundPlan:
    """Fill the budget with rounds: once, after the first one.

    For an adaptive study, after each round: its rounds become shorter as fewer cells are in question.
    """
    is_first = plan.done == plan.first + 1
    if not (is_first or plan.study.is_adaptive):
        return plan
    least = minimum_rounds(plan.study.design)
    more = rounds_within(remaining_s, round_s, max(1, least - (plan.done - plan.first - 1)))
    return replace(plan, planned=as_even(plan.done - 1 + more, least, plan.study.design))


def _repeating(plan: RoundPlan, blocks: Sequence[Block]) -> RoundPlan:
    """Repeat void rounds; under a budget, only as many as a verdict still needs."""
    wanted = plan.planned if plan.budget_s is None else minimum_rounds(plan.study.design)
    lost = rounds_to_repeat(blocks, plan.study.workloads, plan.done, wanted)
    return replace(plan, repeats=max(0, lost - (plan.planned - wanted)))


def _counted(plan: RoundPlan, blocks: Sequence[Block]) -> int:
    """Return the number of rounds that count for the workload with the fewest."""
    return plan.done - rounds_to_repeat(blocks, plan.study.workloads, plan.done, plan.done)


def _extended(plan: RoundPlan, remaining_s: float) -> RoundPlan:
    """Add rounds that still fit at the end: later rounds may be shorter than the first."""
    if plan.left:
        return plan
    return replace(
        plan, planned=rounds_extended(plan.planned, remaining_s, plan.longest_s, plan.study.design)
    )
