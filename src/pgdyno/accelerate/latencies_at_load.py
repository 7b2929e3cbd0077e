"""Latencies at the usual load, after the decision of ``accelerate``; no verdict.

The verdicts are from a closed loop, where a faster server gets more work. Here both servers get the same
transactions at the same instants, at 60 % of the baseline's throughput; latencies count from the intended
start. In this open loop, transactions arrive whether or not earlier ones have ended.

rate = share x mean throughput of the baseline in a closed loop
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from statistics import fmean
from typing import TypeAlias

from pgdyno.base import numbers
from pgdyno.base.errors import HugePagesError, MemoryProofError, PgdynoError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.stopping import time_needed
from pgdyno.measure.design.schedule import for_arms
from pgdyno.measure.verdicts.analysis import log_ratios
from pgdyno.measure.verdicts.failures import is_any_shown
from pgdyno.model.experiments.experiment import Design, DesignKind, Experiment, Phase
from pgdyno.model.experiments.metric import P50, P95, P99, TAIL_MEAN, THROUGHPUT
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.verdict import AT_LOAD, AtLoad, LatencyAtLoad
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.model.plans.plan import PLAN
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT
from pgdyno.stats.nested import mean_interval
from pgdyno.store.experiments import open_store

LATENCIES = (P50, P95, TAIL_MEAN, P99)


def rates_at_load(experiment: Experiment, share: float) -> dict[str, float]:
    """Return the rate of each workload in transactions/s, except where the baseline has no throughput."""
    capacity = {
        name: _mean(experiment, name, THROUGHPUT, experiment.baseline) for name in experiment.workloads
    }
    return {name: share * tps for name, tps in capacity.items() if tps is not None}


def latencies_at_load(
    experiment: Experiment, plan: str, rates: Mapping[str, float], share: float
) -> tuple[AtLoad, ...]:
    """Return the latencies of an experiment at these rates; without workloads in which no block counts."""
    return tuple(
        AtLoad(workload, rate, share, experiment.id, found)
        for workload, rate in rates.items()
        if (found := tuple(one for name in LATENCIES if (one := _latency(experiment, workload, name, plan))))
    )


def _latency(experiment: Experiment, workload: str, metric: str, plan: str) -> LatencyAtLoad | None:
    baseline_ms, plan_ms = (_mean(experiment, workload, metric, arm) for arm in (experiment.baseline, plan))
    if baseline_ms is None or plan_ms is None:
        return None
    ratios = log_ratios(experiment.blocks, workload, metric, plan, experiment.baseline)
    ratio = mean_interval(
        [of_round for _, of_round in sorted(ratios.items())],
        experiment.design.level,
        bias=experiment.design.bias,
    )
    if is_any_shown(experiment.blocks, workload, (plan, experiment.baseline)):
        return LatencyAtLoad(metric, baseline_ms, plan_ms, None)
    return LatencyAtLoad(metric, baseline_ms, plan_ms, None if isinstance(ratio, Unknown) else ratio)


def _mean(experiment: Experiment, workload: str, metric: str, variant: str) -> float | None:
    """Return an arm's mean over the blocks that count; None if no block counts."""
    values = [
        arm.values[metric]
        for block in experiment.blocks
        if block.workload == workload and not block.void_for(variant)
        for arm in block.arms
        if arm.variant == variant and metric in arm.values
    ]
    return fmean(values) if values else None


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
