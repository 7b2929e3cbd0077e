"""The baseline, pgdyno's plan and pgtune's configuration, side by side.

A plan of several layers also has intermediate variants: with one layer, with two, and so on.
pgtune's formula is the most common reference configuration; see ``plan/peers/pgtune.py``.
"""

from __future__ import annotations

from dataclasses import replace

from pgdyno.measure.bundled_study import PGTUNE, BundledStudy, StudyContext
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import PLAN


def study(context: StudyContext) -> Study:
    """Return a comparison of the baseline with every configuration made for this host."""
    baseline = context.baseline
    others = tuple(
        replace(
            baseline,
            name=name,
            settings={**baseline.settings, **context.configurations[name]},
            server=context.servers.get(name, baseline.server),
        )
        for name in (*context.layers, PLAN, PGTUNE)
        if name in context.configurations
    )
    return Study(
        name="configurations",
        question=f"Is PostgreSQL faster with pgdyno's plan than as it is ({baseline.name})?",
        variants=(baseline, *others),
        workloads=context.workloads,
        design=context.design,
        notes=context.notes,
    )


STUDY = BundledStudy(
    title="the baseline against pgdyno's plan and pgtune's configuration",
    study=study,
    needs_plan=True,
)
