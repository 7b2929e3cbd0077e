"""Latencies at the usual load, after the decision of ``accelerate``; no verdict.

The verdicts are from a closed loop, where a faster server gets more work. Here both servers get the same
transactions at the same instants, at 60 % of the baseline's throughput; latencies count from the intended
start.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TypeAlias

from pgdyno.base import numbers
from pgdyno.base.errors import HugePagesError, MemoryProofError, PgdynoError
from pgdyno.base.ports import Progress
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.time_needed import time_needed
from pgdyno.measure.design.schedule import for_arms
from pgdyno.measure.verdicts.open_loop import latencies_at_load, rates_at_load
from pgdyno.model.experiments.experiment import Design, DesignKind, Experiment, Phase
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.verdict import AT_LOAD
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.model.plans.terms import PLAN
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT
from pgdyno.store.experiments import open_store

Measured: TypeAlias = Callable[[Study, Conditions, Progress], Experiment]

SHARE = 0.6
FROM_BUDGET_S = 900.0
"""Shorter budgets are spent on the decision alone."""

_ROUNDS = MINIMUM_ROUNDS_FOR_VERDICT  # the minimum for intervals
_NO_ROOM = (HugePagesError, MemoryProofError)
_SLICE_S = 0.5  # long enough that most transactions due in a turn end in it


def time_at_load_s(conditions: Conditions, budget_s: float, servers: int) -> float:
    """Return the estimated time for these latencies; 0 if they are not measured.

    Both servers get equal arrivals only in a duet with pgdyno-driver. The decision, with ``servers`` servers,
    has priority: its minimum time must remain in the budget.
    """
    workloads = tuple(conditions.workloads.values())
    is_possible = conditions.design.kind is DesignKind.DUET and all(map(_has_arrivals, workloads))
    if budget_s < FROM_BUDGET_S or not is_possible:
        return 0.0
    data_sets = tuple({one.data_set.key: one.data_set for one in workloads}.values())
    decision = time_needed(workloads, for_arms(servers, conditions.design), servers, data_sets)
    needed = time_needed(workloads, _design(conditions.design), 2, ())
    time_s = needed.preparation_s + _ROUNDS * needed.round_s
    return time_s if decision.least_s + time_s <= budget_s else 0.0


def _has_arrivals(workload: Workload) -> bool:
    """Whether its transactions can arrive at a fixed rate."""
    is_plain = not workload.step and not workload.statement
    return workload.generator == DRIVER and is_plain


def _design(design: Design) -> Design:
    return replace(
        design,
        rounds=_ROUNDS,
        blocks_per_round=1,
        slice_s=_SLICE_S,
        writing_slice_s=None,
        phase=Phase.AFTER_CHECKPOINT,  # whole checkpoint cycles would take hours more
        cycle_s=None,
        stretch_s=0.0,
    )


def with_latencies_at_load(
    experiment: Experiment, conditions: Conditions, progress: Progress, measured_by: Measured
) -> Experiment:
    """Measure at the usual load; store and return the experiment with these latencies.

    ``measured_by`` is the use case ``measure``. The decision stands already: lack of memory only adds a note.
    Raises: all other errors of measuring, with a hint how to see the decision.
    """
    rates = rates_at_load(experiment, SHARE)
    if not rates or experiment.design.kind is not DesignKind.DUET:
        return experiment
    progress.step(f"latencies at {numbers.share(SHARE)} of the baseline's throughput")
    workloads = {name: replace(conditions.workloads[name], rate_tps=rate) for name, rate in rates.items()}
    study = Study(
        name=AT_LOAD,
        question=f"How long do transactions take at {numbers.share(SHARE)} of the baseline's throughput?",
        variants=tuple(one for one in experiment.variants if one.name in {experiment.baseline, PLAN}),
        workloads=tuple(workloads),
        design=_design(conditions.design),
        notes=tuple(f"{name}: open loop, {rate:.0f} transactions/s" for name, rate in rates.items()),
    )
    at_rate = replace(conditions, workloads=workloads, budget_s=None, look=None)
    try:
        measured = measured_by(study, at_rate, progress)
    except _NO_ROOM as error:
        return _stored(_with_note(experiment, error.message))
    except PgdynoError as error:
        decided = f"pgdyno report {experiment.id} shows the earlier decision"
        error.hint = "; ".join(filter(None, (error.hint, decided)))
        raise
    if measured.design.kind is not DesignKind.DUET:
        return _stored(_with_note(experiment, "the two servers could not run interleaved"))
    return _stored(replace(experiment, at_load=latencies_at_load(measured, PLAN, rates, SHARE)))


def _with_note(experiment: Experiment, reason: str) -> Experiment:
    note = f"latencies at {numbers.share(SHARE)} of the baseline's throughput were not measured: {reason}"
    return replace(experiment, notes=(*experiment.notes, note))


def _stored(experiment: Experiment) -> Experiment:
    with closing(open_store()) as store:
        store.save(experiment)
    return experiment
