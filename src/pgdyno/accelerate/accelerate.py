"""Inspect, plan, measure the whole plan against the baseline, and decide.

facts      a server with the user's configuration on the workloads' data, and the resources of its host
plan       plan/levers/ on those facts; checked against the live server, with a memory proof
measure    baseline and plan side by side, for as many rounds as the budget allows, or only the first few if
           those decide. The plan and the part of it to apply get separate decisions: neither is selected
           by the figures that prove it
decide     measure/decisions/plan_decision.py: one state, in a sentence
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from pgdyno.accelerate.arms import Attributed, arms_of
from pgdyno.accelerate.build_advice import build_advice
from pgdyno.accelerate.latencies_at_load import time_at_load_s, with_latencies_at_load
from pgdyno.accelerate.planning import Planned, builds_to_choose, inspect_scratch, plan_for
from pgdyno.accelerate.profiled_plan import profiled_plan
from pgdyno.accelerate.request import AccelerateRequest, Acceleration
from pgdyno.apply.runs.host_run import host_target
from pgdyno.base.ports import Progress
from pgdyno.host.cpu_idling import idling_files
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.plan_decision import FUTILE, LOOK_ERROR, decide_plan, is_futile, pays_at_look
from pgdyno.measure.decisions.plan_outcome import outcomes_of
from pgdyno.measure.decisions.stopping import time_needed
from pgdyno.measure.design.schedule import for_arms
from pgdyno.measure.evidence import document_of
from pgdyno.measure.measure import measure
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import PLAN, Plan, Terms, applied_of
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.memory_proof import shared_memory_bytes
from pgdyno.plan.engine.sharing import Memory, note_on_unmeasured
from pgdyno.plan.subject import without_idling
from pgdyno.postgres.process.local_machine import available_memory_bytes
from pgdyno.postgres.server import Server


def accelerate(
    request: AccelerateRequest, progress: Progress, report: Callable[[str], None] = lambda _: None
) -> Acceleration:
    """Measure on scratch servers whether the plan for a server pays. Nothing outside them is changed.

    ``report`` receives sentences on where the statements' time goes, before measuring.
    Raises: MemoryProofError and SettingError from planning; ServerError if the plan changes a machine
    without a machine id; all errors of measuring.
    """
    at_load_s = time_at_load_s(request.conditions, request.budget_s, request.servers_at_most)
    deadline = time.monotonic() + request.budget_s - at_load_s
    if request.subject is None:
        subject = inspect_scratch(request.base, request.conditions, request.plan.figures, progress)
        plan = replace(request.plan, builds=builds_to_choose(request.conditions))
    else:
        subject, plan = request.subject, request.plan
    planned = plan_for(subject, request.base, request.conditions, plan)
    if planned.plan.host_changes:
        host_target()  # receipts need the machine id: fail before minutes of profiling if there is none
    as_booted = request.conditions.as_booted or _why_as_booted(request, planned.plan)
    profiled = profiled_plan(request, planned.plan, as_booted, progress)
    for sentence in profiled.notes:
        report(sentence)
    planned = replace(planned, plan=profiled.plan)
    conditions = replace(
        request.conditions,
        budget_s=max(0.0, deadline - time.monotonic()),
        accepts_builds=planned.plan.server is not None,
        is_resumable=False,
        as_booted=as_booted,
    )
    profiled_request = replace(request, conditions=conditions, notes=(*request.notes, *profiled.notes))
    study = _study(profiled_request, planned, profiled.gains)
    # Estimating the gain of each part takes more rounds than a decision: no early look then.
    terms = replace(request.terms(planned.plan), looks=1 if request.attribute else 2)
    if not request.attribute:
        conditions = replace(conditions, look=partial(_is_settled, terms=terms))
    host, server = document_of(subject.host), document_of(subject.server)
    context = Context(host, server, planned.plan, terms=terms)
    experiment = measure(study, conditions, progress, context)
    decision = decide_plan(experiment, PLAN, terms)
    if at_load_s and decision.state not in FUTILE:
        experiment = with_latencies_at_load(experiment, conditions, progress, measure)
    if request.subject is not None:  # a plan does not switch a running server to another build
        return Acceleration(planned.plan, decision, experiment)
    advice = build_advice(request.conditions, plan.layers, planned.plan)
    return Acceleration(planned.plan, decision, experiment, advice)


def _why_as_booted(request: AccelerateRequest, plan: Plan) -> str:
    """Return why CPU idling is left unchanged; empty if CPUs are kept awake for both servers.

    A decision about a running server is based on CPU idling as it will be after the plan is applied.
    """
    if request.subject is None or idling_files(plan.values):
        return ""
    return "the plan does not change CPU idling"


def _is_settled(experiment: Experiment, terms: Terms) -> bool:
    """Whether measuring can stop: the part to apply is futile, or it and the plan are both decided."""
    applied = applied_of([one.name for one in experiment.variants])
    outcomes = {name: outcomes_of(experiment, name, LOOK_ERROR) for name in (applied, PLAN)}
    futile = {name for name, of_plan in outcomes.items() if is_futile(of_plan, terms)}
    pays = {
        name
        for name, of_plan in outcomes.items()
        if pays_at_look(of_plan, terms) and decide_plan(experiment, name, terms).pays
    }
    return applied in futile or {applied, PLAN} <= futile | pays


def _study(request: AccelerateRequest, planned: Planned, gains: Mapping[str, float]) -> Study:
    """Return the comparison of the baseline with the plan and its reduced variants."""
    conditions = request.conditions
    plan = planned.plan if conditions.as_booted else without_idling(planned.plan)
    arms = arms_of(
        request.base,
        plan,
        _memory(planned.subject.server, conditions),
        attributed=None if request.attribute is None else Attributed(request.attribute, gains),
        no_time=_no_time(conditions),
    )
    return Study(
        name="accelerate",
        question=f"Is PostgreSQL faster with pgdyno's plan than as it is ({request.base.name})?",
        variants=arms.variants,
        workloads=tuple(conditions.workloads),
        design=for_arms(len(arms.variants), conditions.design),
        notes=(
            *request.notes,
            *arms.notes,
            *note_on_unmeasured(line.change.key for line in planned.plan.unmeasured),
        ),
    )


def _no_time(conditions: Conditions) -> str:
    """Return why there is no time for a third server; empty if there is."""
    three = time_needed(tuple(conditions.workloads.values()), conditions.design, 3, ())
    if conditions.budget_s is None or three.measuring_s <= conditions.budget_s:
        return ""
    return f"three servers take about {math.ceil(three.least_s / 60)} minutes, without the time to load data"


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
