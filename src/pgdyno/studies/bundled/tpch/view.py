"""The view of a workload like TPC-H: its part of pages, terminal output and JSON documents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType

from pgdyno.base.document import Json, to_document
from pgdyno.measure.view.series import variants_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.tpch import DISCLAIMER
from pgdyno.studies.bundled.tpch.query_degrees import query_degrees
from pgdyno.studies.bundled.tpch.tables import Relative, lines, plan_comparisons, tpch_view
from pgdyno.studies.bundled.tpch.text import tpch_tables

NAME = "tpch"


def tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield the tables for a terminal."""
    yield from tpch_tables(experiment)


def page(experiment: Experiment) -> Mapping[str, object]:
    """Return the values of its part of the page."""
    return {"tpch": tpch_view(experiment)}


def by_workload(_: Experiment) -> Mapping[str, object]:
    """Return nothing: queries have no part of their own."""
    return {}


def document(experiment: Experiment) -> Json:
    """Return times, runs, best degrees and plans that differ, like TPC-H's; null where the workload is not.

    Times are in seconds, of runs executions per hour; ratios of times are below 1 where it is faster.
    """
    if experiment.tpch is None:
        return None
    variants = variants_of(experiment)
    return to_document(
        {
            "disclaimer": DISCLAIMER,
            "scale": experiment.tpch.scale,
            "streams": experiment.tpch.streams,
            "executions": [
                {
                    "name": line.name,
                    "unit": "s" if line.is_time else "per hour",
                    "figures": dict(zip(variants, line.figures, strict=True)),
                    "relative": [_relative_document(one) for one in line.relative],
                }
                for line in lines(experiment)
            ],
            "best_degrees": query_degrees(experiment),
            "plan_differences": plan_comparisons(experiment),
        }
    )


def _relative_document(one: Relative) -> dict[str, object]:
    return {
        "variant": one.variant,
        "ratio": one.ratio,
        "interval": None if one.interval is None else [one.interval.low, one.interval.high],
        "verdict": None if one.verdict is None else one.verdict.decision,
    }
