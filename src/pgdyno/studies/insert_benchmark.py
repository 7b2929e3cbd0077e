"""The Insert Benchmark: all ten steps, in passes over a database made anew, one arm after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pgdyno.model.errors import UsageError
from pgdyno.model.study import Study
from pgdyno.model.workload import Workload
from pgdyno.studies._contract import Sizing, StudyContext
from pgdyno.studies._insert_benchmark import PRESETS, Size, steps

TITLE = "the Insert Benchmark's ten steps; vary a setting with --factor"
NEEDS_PLAN = False

_DEFAULT_PRESET = "quick"


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return the ten steps at the size asked for. Raises: UsageError for an unknown preset."""
    name = sizing.preset or _DEFAULT_PRESET
    if name not in PRESETS:
        raise UsageError(f'no preset "{name}" of the Insert Benchmark', hint=f"known: {', '.join(PRESETS)}")
    return steps(_resized(PRESETS[name], sizing))


def study(context: StudyContext) -> Study:
    """Return one variant to begin with: factors make the others."""
    return Study(
        name="insert-benchmark",
        question="How do the variants do in the ten steps of the Insert Benchmark?",
        variants=(context.baseline,),
        workloads=context.workloads,
        design=context.design,
        notes=("Insert Benchmark: a transaction is an inserted row in steps l.*, a query in steps q*",),
    )


def _resized(size: Size, sizing: Sizing) -> Size:
    return replace(
        size,
        clients=sizing.clients or size.clients,
        rows=sizing.rows or size.rows,
        step_s=sizing.step_s or size.step_s,
        is_faithful=sizing.is_faithful,
    )
