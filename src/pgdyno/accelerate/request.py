"""A request to accelerate a server, and the result: the plan, the decision on it, and the experiment."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgdyno.base import numbers
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.plan_decision import PlanDecision
from pgdyno.measure.design.parts import MOST_PARTS, Attribute
from pgdyno.measure.verdicts.part_worths import layers_left_out
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.plans.plan import PROGRAMS_GAIN, RELOAD_GAIN, RESTART_GAIN, WITHOUT, Layer, Plan, Terms
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.plan.subject import Subject

DEFAULT_WORKLOADS = ("sysbench-read-only", "sysbench-read-write")


@dataclass(frozen=True)
class BuildAdvice:
    """The expected gain of another build.

    ``missing`` lists the prerequisites that this host lacks for it; empty: none.
    """

    command: str
    minutes: int
    gain: float
    missing: str

    @property
    def sentence(self) -> str:
        """A sentence on a build's gain, with its duration and command or missing packages."""
        gain = f"about {numbers.change(1 + self.gain, 0)} (docs/guides/build.md)"
        if self.missing:
            return f"A profile-guided build could gain {gain}; it cannot be made here yet: {self.missing}."
        return (
            f"A profile-guided build takes about {self.minutes} more minutes and gains {gain}: "
            f"{self.command}, or --build; the next run uses it automatically."
        )


@dataclass(frozen=True)
class Acceleration:
    """The result: the plan, the decision on it, and the experiment with its figures.

    ``build_advice`` is advice on a build; None if one was measured, or builds were not requested.
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


@dataclass(frozen=True)
class AccelerateRequest:
    """A request to accelerate a server.

    ``base`` is the configuration as found, on scratch servers of ``conditions``.

    ``subject`` is the running server to plan for; None: the scratch server itself. ``min_gain`` None: the
    default for the plan's restart or programs, see ``worthwhile_gain``. ``attribute``: the kind of parts that
    are also measured alone and left out; None: no parts.
    """

    conditions: Conditions
    base: Variant
    budget_s: float
    max_loss: float = 0.05
    max_tail_loss: float = 0.10
    max_p99_loss: float = 0.25
    min_gain: float | None = None
    plan: PlanRequest = field(default_factory=PlanRequest)
    subject: Subject | None = None
    notes: tuple[str, ...] = ()
    attribute: Attribute | None = None

    @property
    def servers_at_most(self) -> int:
        """The maximum number of servers of the experiment.

        There is a third if the plan may contain per-application settings; ``attribute`` adds two per part.
        """
        may_leave_out = self.subject is None and Layer.APPLICATION in self.plan.layers
        return 2 + may_leave_out + 2 * self.parts_at_most

    @property
    def parts_at_most(self) -> int:
        """The maximum number of parts that are measured separately."""
        if self.attribute is None:
            return 0
        return MOST_PARTS if self.attribute is Attribute.LEVERS else len(self.plan.layers)

    def terms(self, plan: Plan) -> Terms:
        """Return the requirements that the plan has to meet."""
        gain = worthwhile_gain(plan) if self.min_gain is None else self.min_gain
        return Terms(gain, self.max_loss, self.max_tail_loss, self.max_p99_loss)


def worthwhile_gain(plan: Plan) -> float:
    """Return the throughput gain that a plan must be shown to exceed.

    It is larger for plans with other programs, which are a risk, and with a restart, which is an outage.
    """
    if plan.server is not None:
        return PROGRAMS_GAIN
    return RESTART_GAIN if plan.needs_restart else RELOAD_GAIN
