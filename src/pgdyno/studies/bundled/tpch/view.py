"""Views of the TPC-H-like workload: its part of pages, terminal output and JSON documents. Pure."""

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
    """Return the template values of the TPC-H part."""
    return {"tpch": tpch_view(experiment)}


def by_workload(_: Experiment) -> Mapping[str, object]:
    """Return an empty mapping: the page has no parts per query."""
    return {}


def document(experiment: Experiment) -> Json:
    """Return times, runs, best degrees and differing plans; null for other workloads.

    Times are in seconds, runs in executions per hour. A ratio of times below 1 means faster.
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
