"""The Insert Benchmark: all ten steps, in passes over a new database, one arm after another."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.base import numbers
from pgdyno.measure.bundled_study import BundledStudy, Option, Sizing, StudyContext, separated
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.studies.bundled.insert_benchmark.sizes import (
    MODE,
    PRESET,
    ROWS,
    STEP_SECONDS,
    Size,
    size_of,
)
from pgdyno.studies.bundled.insert_benchmark.steps import steps

STEP = Option(
    "step",
    "measure only this step (l.i0, l.x, …, qp1000), after the steps that it needs; repeatable, or several "
    "separated by commas.",
    separated,
    metavar="STEP",
    is_repeatable=True,
    is_recorded=False,
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return the requested steps.

    Raises: UsageError for an unknown preset or step, or for invalid rows.
    """
    return steps(size_of(sizing), sizing.of(STEP))


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return the server settings of the requested size."""
    return size_of(sizing).settings


def study(context: StudyContext) -> Study:
    """Return a study of the baseline; factors add the other variants."""
    size, chosen = size_of(context.sizing), context.sizing.of(STEP)
    mode = context.sizing.of(MODE)
    which = f"step{'s' if len(chosen) > 1 else ''} {', '.join(chosen)}" if chosen else "the ten steps"
    return Study(
        name="insert-benchmark",
        question=f"How do the variants do in {which} of the Insert Benchmark, {mode} mode, "
        f"preset {size.preset}?",
        variants=(context.baseline,),
        workloads=context.workloads,
        design=context.design,
        notes=(_not_io_bound(size),) if size.is_too_small else (),
    )


def _not_io_bound(size: Size) -> str:
    return (
        f"not IO-bound at this size: about {numbers.size(size.loaded_bytes)} of data, and "
        f"{numbers.size(size.server_memory_bytes or 0)} of memory for each server; use at least twice as "
        "much data as memory"
    )


STUDY = BundledStudy(
    title="the Insert Benchmark's ten steps; vary a setting with --factor",
    study=study,
    workloads=workloads,
    passes=f"{__package__}.passes",
    settings=settings,
    options=(PRESET, STEP, ROWS, STEP_SECONDS, MODE),
)
