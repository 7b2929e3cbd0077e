"""Inspect, plan, measure the whole plan against the baseline, and decide.

facts      a server of the user's kind on the workloads' data, and what its host has
plan       levers/ on those facts; checked against the live server, with a memory proof
measure    baseline and plan side by side, as many rounds as the budget holds; there is one candidate, so that
           nothing is chosen by the figures that prove it
decide     experiments/decisions/plan_decision.py: one state, in a sentence
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial

from pgdyno.app.acceleration.arms import arms_of
from pgdyno.app.acceleration.at_load import time_at_load_s, with_latencies_at_load
from pgdyno.app.acceleration.build_first import BuildAdvice, build_advice, builds_to_choose
from pgdyno.app.local_machine import available_memory_bytes
from pgdyno.app.measuring.evidence import document_of
from pgdyno.app.measuring.experiment import Context
from pgdyno.app.measuring.measure import Conditions, measure
from pgdyno.app.planning.planning import Planned, Subject, inspect_scratch, plan_for
from pgdyno.experiments.decisions.plan_decision import (
    FUTILE,
    PlanDecision,
    decide_plan,
    is_futile,
    minutes_to_decide,
    outcomes_of,
)
from pgdyno.experiments.decisions.time_needed import time_needed
from pgdyno.experiments.verdicts.layer_effects import layers_left_out
from pgdyno.levers.engine.effective import EffectiveSettings
from pgdyno.levers.engine.memory_proof import shared_memory_bytes
from pgdyno.levers.engine.planner import PlanRequest
from pgdyno.levers.engine.sharing_memory import Memory
from pgdyno.model.experiments.awake import idling_files
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.model.plans.terms import (
    PLAN,
    PROGRAMS_GAIN,
    RELOAD_GAIN,
    RESTART_GAIN,
    WITHOUT,
    Terms,
    left_out_per_application,
)
from pgdyno.model.ports import Progress
from pgdyno.model.servers.server import Server
from pgdyno.model.variants.variant import Variant

DEFAULT_WORKLOADS = ("sysbench-read-only", "sysbench-read-write")
"""The gain that makes a change worth while: other programs are a risk, a restart is an outage."""


@dataclass(frozen=True)
class AccelerateRequest:
    """A request to accelerate a server.

    ``base`` is the configuration as found, on scratch servers of ``conditions``.

    ``subject`` is the running server that is planned for; None plans for a scratch server itself.
    ``min_gain`` None: what the plan's restart or programs ask for. ``is_attributed``: the plan without each
    of its layers is measured beside the whole.
    """

    conditions: Conditions
    base: Variant
    budget_s: float
    max_loss: float = 0.05
    max_tail_loss: float = 0.10
    min_gain: float | None = None
    plan: PlanRequest = field(default_factory=PlanRequest)
    subject: Subject | None = None
    notes: tuple[str, ...] = ()
    is_attributed: bool = False

    @property
    def servers_at_most(self) -> int:
        """The maximum number of servers of the experiment.

        A third one if the plan may hold per-application settings; with ``is_attributed``, one per layer
        in addition.
        """
        may_leave_out = self.subject is None and Layer.APPLICATION in self.plan.layers
        return 2 + may_leave_out + (len(self.plan.layers) if self.is_attributed else 0)

    def terms(self, plan: Plan) -> Terms:
        """Return the terms by which the plan is decided."""
        gain = worthwhile_gain(plan) if self.min_gain is None else self.min_gain
        return Terms(gain, self.max_loss, self.max_tail_loss)


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


def accelerate(request: AccelerateRequest, progress: Progress) -> Acceleration:
    """Measure whether the plan for a server pays, on scratch servers. Nothing outside them is changed.

    Raises: MemoryProofError and SettingError from planning; whatever measuring raises.
    """
    at_load_s = time_at_load_s(request.conditions, request.budget_s, request.servers_at_most)
    deadline = time.monotonic() + request.budget_s - at_load_s
    if request.subject is None:
        subject = inspect_scratch(request.base, request.conditions, request.plan.figures, progress)
        plan = replace(request.plan, builds=builds_to_choose(request.conditions))
    else:
        subject, plan = request.subject, request.plan
    planned = plan_for(subject, request.base, request.conditions, plan)
    terms = request.terms(planned.plan)
    conditions = replace(
        request.conditions,
        budget_s=max(0.0, deadline - time.monotonic()),
        accepts_builds=planned.plan.server is not None,
        is_resumable=False,
        is_futile=partial(_is_futile, terms=terms),
        as_booted=request.conditions.as_booted or _why_as_booted(request, planned.plan),
    )
    host, server = document_of(subject.host), document_of(subject.server)
    context = Context(host, server, planned.plan, terms=terms)
    study = _study(replace(request, conditions=conditions), planned)
    experiment = measure(study, conditions, progress, context)
    decision = decide_plan(experiment, PLAN, terms)
    if at_load_s and decision.state not in FUTILE:
        experiment = with_latencies_at_load(experiment, conditions, progress)
    if request.subject is not None:  # a running server is not moved to another build by a plan
        return Acceleration(planned.plan, decision, experiment)
    advice = build_advice(request.conditions, plan.layers, planned.plan)
    return Acceleration(planned.plan, decision, experiment, advice)


def _why_as_booted(request: AccelerateRequest, plan: Plan) -> str:
    """Return why idle CPUs are left as they are; nothing if they are kept awake for both servers.

    What decides about somebody's server is measured as its machine will be left.
    """
    if request.subject is None or idling_files(plan.values):
        return ""
    return "the plan leaves it to the machine how its CPUs idle"


def worthwhile_gain(plan: Plan) -> float:
    """Return the gain of throughput that a plan has to bring beyond doubt."""
    if plan.server is not None:
        return PROGRAMS_GAIN
    return RESTART_GAIN if plan.needs_restart else RELOAD_GAIN


def _is_futile(experiment: Experiment, terms: Terms) -> bool:
    """Whether neither the plan nor its part to be applied is worth further measuring."""
    names = [one.name for one in experiment.variants if left_out_per_application(one.name)]
    return all(is_futile(outcomes_of(experiment, name), terms) for name in (PLAN, *names))


def _study(request: AccelerateRequest, planned: Planned) -> Study:
    """Return the comparison of the baseline with the plan and its reduced variants."""
    conditions = request.conditions
    plan = planned.plan if conditions.as_booted else without_idling(planned.plan)
    arms = arms_of(
        request.base,
        plan,
        _memory(planned.subject.server, conditions),
        is_attributed=request.is_attributed,
        no_time=_no_time(conditions),
    )
    return Study(
        name="accelerate",
        question=f"Is PostgreSQL faster with pgdyno's plan than as it is ({request.base.name})?",
        variants=arms.variants,
        workloads=tuple(conditions.workloads),
        design=conditions.design,
        notes=(*request.notes, *arms.notes),
    )


def _no_time(conditions: Conditions) -> str:
    """Say why there is no time for a third server; nothing if there is."""
    three = time_needed(tuple(conditions.workloads.values()), conditions.design, 3, ())
    if conditions.budget_s is None or three.measuring_s <= conditions.budget_s:
        return ""
    return (
        f"three servers take about {math.ceil(three.least_s / 60)} minutes, not counting the loading of data"
    )


def _memory(server: Server, conditions: Conditions) -> Memory:
    """Return the memory available to all servers of the experiment together."""

    def settings(variant: Variant) -> EffectiveSettings:
        return EffectiveSettings(server, {k: v for k, v in variant.gucs.items() if k in server.settings})

    return Memory(
        available_memory_bytes(),
        max(one.data_set.size_bytes for one in conditions.workloads.values()),
        size_of=lambda variant: shared_memory_bytes(settings(variant)),
        buffers_of=lambda variant: settings(variant).size_bytes("shared_buffers"),
    )


def without_idling(plan: Plan) -> Plan:
    """Return the plan without how CPUs idle, where the measurement decides that for all servers."""
    idling = idling_files(plan.values)
    return replace(plan, lines=tuple(line for line in plan.lines if line.change.key not in idling))
