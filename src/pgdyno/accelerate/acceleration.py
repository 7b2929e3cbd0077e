"""The result of ``accelerate``: the plan, the decision on it, and the experiment."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.accelerate.build_advice import BuildAdvice
from pgdyno.measure.decisions.plan_decision import PlanDecision, minutes_to_decide
from pgdyno.measure.verdicts.part_worths import layers_left_out
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.plans.plan import Plan
from pgdyno.model.plans.terms import WITHOUT


@dataclass(frozen=True)
class Acceleration:
    """The result: the plan, the decision on it, and the experiment with its figures.

    ``build_advice`` is what a build would add; None where one was measured, or was not asked for.
    """

    plan: Plan
    decision: PlanDecision
    experiment: Experiment
    build_advice: BuildAdvice | None = None

    @property
    def layer_verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on the plan without one of its layers, against the baseline."""
        names = {f"{WITHOUT}{layer}" for layer in layers_left_out(self.experiment)}
        return tuple(one for one in self.experiment.verdicts if one.variant in names)

    @property
    def minutes_to_decide(self) -> float | None:
        """About how much longer it would take to decide; None if it is decided, or no time would."""
        return minutes_to_decide(self.experiment, self.decision)
