"""Latencies at a fixed rate of transactions, as a table for page and terminal. Pure."""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.base.text import sentence
from pgdyno.measure.view.words import metric_of
from pgdyno.model.experiments.at_load import AtLoad, LatencyAtLoad
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.report.elements.tables import NOTHING, Column, Table, columns


def at_load_table(experiment: Experiment) -> Table | None:
    """Return the latencies of every workload; None if none was measured at a fixed rate."""
    if not experiment.at_load:
        return None
    share = numbers.share(experiment.at_load[0].share)
    level = numbers.share(experiment.design.level)
    return Table(
        f"Latencies at {share} of the baseline's throughput: it and the whole plan get the same transactions "
        "at the same instants; latencies count from the intended start. There is no verdict on these",
        (Column("Workload"), Column("Metric"), *columns("Before", "After", "Effect", level, numbers_from=0)),
        tuple(_row(one, latency) for one in experiment.at_load for latency in one.latencies),
    )


def _row(one: AtLoad, latency: LatencyAtLoad) -> tuple[str, ...]:
    metric, ratio = metric_of(latency.metric), latency.ratio
    return (
        f"{one.workload}, {numbers.number(one.rate_tps)}/s",
        sentence(metric.title),
        numbers.quantity(metric, latency.baseline_ms),
        numbers.quantity(metric, latency.plan_ms),
        NOTHING if ratio is None else numbers.change_within(ratio.point, ratio.low, ratio.high),
        NOTHING if ratio is None else numbers.interval(ratio),
    )
