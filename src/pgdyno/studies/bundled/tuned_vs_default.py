"""The machine as found, with TuneD's profile for PostgreSQL, and with pgdyno's system layer.

Another variant adds the application layer, so the report shows the effect of the system layer together with
it. These settings exist once per machine, so whole trials alternate.
"""

from __future__ import annotations

from pgdyno.measure.bundled_study import APPLICATION, SYSTEM, TUNED, BundledStudy, StudyContext
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import PLAN, Layer


def study(context: StudyContext) -> Study:
    """Return a comparison of the machine as found with TuneD's and pgdyno's tuning."""
    names = [name for name in (TUNED, SYSTEM, APPLICATION, PLAN) if context.configurations.get(name)]
    return Study(
        name="tuned-vs-default",
        question="Does tuning the operating system make PostgreSQL faster on this machine?",
        variants=(context.baseline, *map(context.configured, names)),
        workloads=context.workloads,
        design=context.design,
    )


STUDY = BundledStudy(
    title="the machine as it is against TuneD's profile and pgdyno's system layer",
    study=study,
    needs_plan=True,
    layers=(Layer.APPLICATION, Layer.SYSTEM),
    measures=("sysbench-read-only", "sysbench-read-write"),
)
