"""Rates of all steps and variants: absolute, relative to the baseline, and of the background load. Pure.

The tables are those of the Insert Benchmark's reports, with two differences: relative rates have an interval,
and their colour shows the verdict, not whether a threshold was exceeded.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.text import sentence
from pgdyno.measure.verdicts.failures import REQUIRED_BACKGROUND_SHARE, MissedRate, missed_rate
from pgdyno.measure.view.series import blocks_of, means, typical, variants_of
from pgdyno.measure.view.wording import (
    bounds_text,
    compact,
    direction_hint,
    half_width,
    metric_of,
    step_names,
    step_workloads,
    symbol,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.report.elements.tables import NOTHING, StyledCell, StyledTable

MISSED = "missed"
_BACKGROUND = "background_rate_share"


@dataclass(frozen=True)
class Result:
    """One variant in one step. ``rate`` is None if all blocks are void.

    ``background_share`` is the mean over the valid passes; ``missed`` has the number of passes in which it
    was below the required share.
    """

    variant: str
    rate: float | None
    background_share: float | None
    missed: MissedRate | None
    verdict: Verdict | None  # on the rate; None for the baseline


@dataclass(frozen=True)
class StepResults:
    """One step: ``unit`` is "rows/s" or "queries/s"; the baseline's result comes first."""

    workload: str
    name: str
    operation: str
    unit: str
    target_rows_per_s: float | None
    results: tuple[Result, ...]


def step_results(experiment: Experiment) -> tuple[StepResults, ...]:
    """Return all steps in order; empty for TPC-H, which has its own tables, and for other workloads."""
    if experiment.tpch:
        return ()
    names = step_names(experiment)
    return tuple(
        StepResults(
            workload=workload,
            name=names[workload],
            operation=experiment.operations[workload],
            unit=metric_of(THROUGHPUT, experiment.operations[workload]).unit,
            target_rows_per_s=_target(experiment, workload),
            results=tuple(_result(experiment, workload, variant) for variant in variants_of(experiment)),
        )
        for workload in step_workloads(experiment)
    )


def rate_table(experiment: Experiment) -> StyledTable:
    """Return the absolute rates."""
    steps = step_results(experiment)
    return StyledTable(
        "Rate",
        "Rows or queries per second, geometric mean of all valid rounds",
        tuple(StyledCell(step.name, step.unit) for step in steps),
        _rows(experiment, [[_rate_cell(one) for one in step.results] for step in steps]),
    )


def relative_table(experiment: Experiment, metric: str = THROUGHPUT) -> StyledTable:
    """Return variant/baseline of a metric that has verdicts: the ratio, its interval, the decision."""
    steps = step_results(experiment)
    verdicts = {(v.workload, v.variant): v for v in experiment.verdicts if v.metric == metric}
    is_rate = metric == THROUGHPUT
    known = metric_of(metric, "operations")
    level = numbers.share(experiment.design.level)
    return StyledTable(
        "Relative rate (rQPS)" if is_rate else sentence(known.title),
        f"Relative to {experiment.baseline} = 1, with the {level} interval; {direction_hint(known)}",
        tuple(StyledCell(step.name) for step in steps),
        _rows(
            experiment,
            [
                [relative_cell(step, one, verdicts.get((step.workload, one.variant))) for one in step.results]
                for step in steps
            ],
        ),
    )


def background_table(experiment: Experiment) -> StyledTable | None:
    """Return each variant's achieved share of the background rate; None if no step has such a rate."""
    steps = [
        step
        for step in step_results(experiment)
        if any(one.background_share is not None for one in step.results)
    ]
    if not steps:
        return None
    rows = _rows(experiment, [[_background_cell(one) for one in step.results] for step in steps])
    targets = tuple(
        StyledCell(NOTHING if step.target_rows_per_s is None else numbers.plain(step.target_rows_per_s))
        for step in steps
    )
    target = ("target, rows/s",) if any(step.target_rows_per_s is not None for step in steps) else ()
    return StyledTable(
        "Background rate",
        "Rows inserted per second during the queries, share of the target, mean over the passes. With a pass "
        f"below {numbers.share(REQUIRED_BACKGROUND_SHARE)}, the rate is missed and the step's other figures "
        "are not compared",
        tuple(StyledCell(step.name) for step in steps),
        (*rows, *((name, targets) for name in target)),
    )


def relative_cell(step: StepResults, result: Result, verdict: Verdict | None) -> StyledCell:
    """Return variant/baseline with its decision, or the reason why there is none."""
    baseline = step.results[0]
    if result.missed is not None:
        return StyledCell(MISSED, f"at {numbers.share(result.missed.lowest, 0)}", MISSED)
    if result is baseline:
        return StyledCell("1" if result.rate is not None else NOTHING)
    if baseline.missed is not None:
        return StyledCell(NOTHING, f"{baseline.variant} missed", MISSED)
    if verdict is None or verdict.effect is None:
        return StyledCell(NOTHING)
    return StyledCell(
        f"{verdict.effect:.2f} {symbol(verdict.decision)}",
        bounds_text(verdict.interval) if verdict.interval else "no interval",
        str(verdict.decision),
        narrow_note=half_width(verdict),
    )


def _rows(
    experiment: Experiment, by_step: list[list[StyledCell]]
) -> tuple[tuple[str, tuple[StyledCell, ...]], ...]:
    """Transpose cells by step into rows by variant."""
    return tuple(
        (name, tuple(cells[order] for cells in by_step)) for order, name in enumerate(variants_of(experiment))
    )


def _rate_cell(result: Result) -> StyledCell:
    missed = _missed(result)
    if result.rate is None:
        return StyledCell(NOTHING, missed, missed)
    return StyledCell(numbers.number(result.rate), missed, missed, compact(result.rate))


def _background_cell(result: Result) -> StyledCell:
    if result.background_share is None:
        return StyledCell(NOTHING)
    missed = _missed(result)
    return StyledCell(numbers.share(result.background_share, 1), missed, missed)


def _missed(result: Result) -> str:
    return "" if result.missed is None else MISSED


def _result(experiment: Experiment, workload: str, variant: str) -> Result:
    key = (workload, variant, THROUGHPUT)
    found = (v for v in experiment.verdicts if (v.workload, v.variant, v.metric) == key)
    return Result(
        variant=variant,
        rate=typical(experiment, workload, THROUGHPUT, variant),
        background_share=means(experiment, workload, _BACKGROUND).get(variant),
        missed=missed_rate(experiment.blocks, workload, variant),
        verdict=next(found, None),
    )


def _target(experiment: Experiment, workload: str) -> float | None:
    steps = (arm.step for _, block in blocks_of(experiment, workload) for arm in block.arms if arm.step)
    targets = (step.target_rows_per_s for step in steps)
    return next((target for target in targets if target is not None), None)
