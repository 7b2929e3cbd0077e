"""The plan without settings that suit only some applications: it leads, because it is applied. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.measure.decisions.plan_decision import PlanDecision, decide_plan
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.terms import left_out_per_application


@dataclass(frozen=True)
class PerApplication:
    """The settings left out of the plan, and the decision on the rest of it."""

    variant: str
    settings: tuple[str, ...]
    decision: PlanDecision

    @property
    def sentence(self) -> str:
        """The sentence above that on the whole plan."""
        return f"Without {self._names}, which pgdyno never applies, {_continued(self.decision)}"

    def whole_sentence(self, whole: PlanDecision) -> str:
        """Return the sentence on the whole plan."""
        return f"With {self._names} (only statements prepared by name gain from it) {_continued(whole)}"

    @property
    def _names(self) -> str:
        return " and ".join(self.settings)


def _continued(decision: PlanDecision) -> str:
    return f"{decision.sentence[0].lower()}{decision.sentence[1:]}"


def without_per_application(experiment: Experiment) -> PerApplication | None:
    """Return the results without such settings; None if they were not measured."""
    if experiment.terms is None:
        return None
    for variant in experiment.variants:
        if settings := left_out_per_application(variant.name):
            decision = decide_plan(experiment, variant.name, experiment.terms)
            return PerApplication(variant.name, settings, decision)
    return None
