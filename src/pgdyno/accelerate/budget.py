"""Check whether an experiment fits into the budget of ``accelerate``.

The result is reported, or the request refused, before anything is started.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pgdyno.accelerate.in_place import loaded_time
from pgdyno.accelerate.latencies_at_load import SHARE, time_at_load_s
from pgdyno.accelerate.planning import builds_to_choose
from pgdyno.accelerate.request import AccelerateRequest
from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.measure.arenas.datasets import is_loaded
from pgdyno.measure.decisions.stopping import TimeNeeded, time_needed
from pgdyno.measure.design.parts import MOST_PARTS, Attribute
from pgdyno.measure.design.schedule import for_arms
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.plans.plan import Layer
from pgdyno.postgres.process.local_machine import workspace


def what_fits(request: AccelerateRequest, *, is_loaded: bool = False) -> str:
    """Return a sentence on the parts of the experiment that fit into the budget.

    ``is_loaded``: the running server itself is measured.

    Raises: UsageError with the budget needed, if this one is too small for a verdict.
    """
    whole = loaded_time(request) if is_loaded else _time(request, arms=2)
    _require(request, whole, "a verdict")
    arms = 2 if is_loaded else replace(request, attribute=None).servers_at_most
    if arms > 2 and (three := _time(request, arms)).least_s <= request.budget_s:
        whole = three
    budget = numbers.duration(request.budget_s)
    at_load_s = 0.0 if is_loaded else _time_at_load_s(request)
    left_s = request.budget_s - at_load_s
    at_load = f", and latencies at {numbers.share(SHARE)} of the measured throughput" if at_load_s else ""
    sooner = "" if is_loaded or request.attribute else f", or {whole.least_rounds} if those already decide"
    fits = f"up to {budget}: about {whole.rounds_within(left_s)} rounds{sooner}{at_load}"
    parts = 0 if is_loaded else _parts(request)
    if parts < 2:
        return fits
    apart = _time(request, arms + 2 * parts, stretch_s=0.0)
    if request.attribute is not None:
        kind = request.attribute.value
        _require(request, apart, f"verdicts on single {kind}", " or leave out --attribute")
        rounds = apart.rounds_within(left_s)
        each = f"up to {parts} {kind} alone and left out"
        return f"{budget}: the whole plan, and {each}, about {rounds} rounds{at_load}"
    if apart.least_s <= request.budget_s:
        return f"{fits}; measuring each layer separately (--attribute) also fits"
    return f"{fits}; measuring each layer separately (--attribute) takes {_least_minutes(apart)} min"


def _require(request: AccelerateRequest, needed: TimeNeeded, what: str, otherwise: str = "") -> None:
    if request.budget_s >= needed.least_s:
        return
    alone = (
        f", and {numbers.duration(needed.stretches_s)} for running servers one at a time"
        if needed.stretches_s
        else ""
    )
    enough = f"--budget {_least_minutes(needed)}m"
    raise UsageError(
        f"a budget of {numbers.duration(request.budget_s)} is too small for {what}",
        detail=f"it takes {needed.least_rounds} rounds of about {numbers.duration(round(needed.round_s))}, "
        f"after about {numbers.duration(round(needed.preparation_s))} of preparation{alone}; these are "
        "estimates",
        hint=f"{enough},{otherwise}" if otherwise else enough,
    )


def _least_minutes(needed: TimeNeeded) -> int:
    return math.ceil(needed.least_s / 60)


def _time(request: AccelerateRequest, arms: int, stretch_s: float | None = None) -> TimeNeeded:
    """Return the time that ``arms`` servers take; ``stretch_s`` None: the design's."""
    workloads = tuple(request.conditions.workloads.values())
    design = for_arms(arms, request.conditions.design)
    design = design if stretch_s is None else replace(design, stretch_s=stretch_s)
    return time_needed(workloads, design, arms, _data_sets_to_load(request))


def _time_at_load_s(request: AccelerateRequest) -> float:
    return time_at_load_s(request.conditions, request.budget_s, request.servers_at_most)


def _parts(request: AccelerateRequest) -> int:
    """Return the largest number of parts of the plan; of layers without ``--attribute``."""
    return MOST_PARTS if request.attribute is Attribute.LEVERS else len(_layers(request))


def _layers(request: AccelerateRequest) -> Sequence[Layer]:
    """Return the layers that the plan may have; it can turn out to have fewer."""
    has_builds = request.subject is None and bool(builds_to_choose(request.conditions))
    return [layer for layer in request.plan.layers if layer is not Layer.COMPILER or has_builds]


def _data_sets_to_load(request: AccelerateRequest) -> Sequence[DataSet]:
    installation = request.conditions.installation
    data_sets = {one.data_set.key: one.data_set for one in request.conditions.workloads.values()}
    if installation is None:
        return tuple(data_sets.values())
    place = workspace()
    return [one for one in data_sets.values() if not is_loaded(place, one, installation)]
