"""Latencies at the usual load of a server, after ``accelerate`` has decided: figures without a verdict.

The verdicts are of a closed loop, where a faster server gets more work. Here both servers get the same
transactions at the same instants, 60 % of what the baseline can do; latencies count from the intended start.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from pgdyno.app import wiring
from pgdyno.app.measure import Conditions, measure
from pgdyno.experiments.at_load import latencies_at_load, rates_at_load
from pgdyno.experiments.time_needed import time_needed
from pgdyno.model.errors import InterruptedByUserError, PgdynoError
from pgdyno.model.experiment import Design, DesignKind, Experiment, Phase
from pgdyno.model.ports import Progress
from pgdyno.model.study import Study
from pgdyno.model.terms import PLAN
from pgdyno.model.workload import DRIVER
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT

SHARE = 0.6
FROM_BUDGET_S = 900.0
"""Shorter budgets go to the decision alone."""

_ROUNDS = MINIMUM_ROUNDS_FOR_VERDICT  # intervals take as many
_SLICE_S = 0.5  # most transactions that are due in a turn should end in it


def time_at_load_s(conditions: Conditions, budget_s: float) -> float:
    """Return about how long it takes; 0 where it is not measured.

    Arrivals are the same for both servers only in turns, and by our own generator.
    """
    is_possible = conditions.design.kind is DesignKind.DUET and all(
        workload.generator == DRIVER and not workload.is_step for workload in conditions.workloads.values()
    )
    if budget_s < FROM_BUDGET_S or not is_possible:
        return 0.0
    needed = time_needed(tuple(conditions.workloads.values()), _design(conditions.design), 2, ())
    return needed.preparation_s + _ROUNDS * needed.round_s


def _design(design: Design) -> Design:
    return replace(
        design,
        rounds=_ROUNDS,
        blocks_per_round=1,
        slice_s=_SLICE_S,
        writing_slice_s=None,
        phase=Phase.AFTER_CHECKPOINT,  # a whole cycle of checkpoints would take hours more
        cycle_s=None,
    )


def with_latencies_at_load(experiment: Experiment, conditions: Conditions, progress: Progress) -> Experiment:
    """Measure at load; store and return the experiment with what was found.

    It is decided already, so that an error here is a note of it. Raises: InterruptedByUserError.
    """
    rates = rates_at_load(experiment, SHARE)
    if not rates or experiment.design.kind is not DesignKind.DUET:
        return experiment
    progress.step(f"latencies at {SHARE:.0%} of the baseline's throughput")
    workloads = {name: replace(conditions.workloads[name], rate_tps=rate) for name, rate in rates.items()}
    study = Study(
        name="accelerate-at-load",
        question=f"How long do transactions take at {SHARE:.0%} of the baseline's throughput?",
        variants=tuple(one for one in experiment.variants if one.name in {experiment.baseline, PLAN}),
        workloads=tuple(workloads),
        design=_design(conditions.design),
        notes=tuple(f"{name}: open loop, {rate:.0f} transactions/s" for name, rate in rates.items()),
    )
    alike = replace(conditions, workloads=workloads, budget_s=None, is_futile=None)
    try:
        measured = measure(study, alike, progress)
    except InterruptedByUserError:
        raise
    except PgdynoError as error:
        note = f"latencies at {SHARE:.0%} of the load were not measured: {error.message}"
        found = replace(experiment, notes=(*experiment.notes, note))
    else:
        found = replace(experiment, at_load=latencies_at_load(measured, PLAN, rates, SHARE))
    with closing(wiring.open_store()) as store:
        store.save(found)
    return found
