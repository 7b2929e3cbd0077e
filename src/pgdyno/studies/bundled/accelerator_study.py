"""The accelerator's study of 2023: an unmodified server against the same server accelerated, layer by layer.

The published table has the throughput of unmodified sysbench, read-only and read-write, before and after,
with the load on a separate host (``--cell``); ``measure/view/cards.py`` has its form. Each layer is measured
on top of the previous ones. Nothing is decided or applied: use ``accelerate`` for that.
"""

from __future__ import annotations

from pgdyno.measure.bundled_study import BundledStudy, StudyContext
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import PLAN, Layer


def study(context: StudyContext) -> Study:
    """Return a comparison of the default with the plan, adding one layer at a time."""
    return Study(
        name="accelerator-study",
        question="What does each layer of the plan add to the throughput of the default configuration?",
        variants=(context.baseline, *map(context.configured, (*context.layers, PLAN))),
        workloads=context.workloads,
        design=context.design,
    )


STUDY = BundledStudy(
    title="the accelerator's study: sysbench on the default and on the whole plan, layer by layer",
    study=study,
    needs_plan=True,
    layers=(Layer.APPLICATION, Layer.SYSTEM, Layer.HARDWARE, Layer.COMPILER),
    measures=("sysbench-read-only", "sysbench-read-write"),
    generator="sysbench",
)
