"""A variant compared with itself: this machine's noise under the chosen design."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.measure.bundled_study import BundledStudy, StudyContext
from pgdyno.model.experiments.study import Study


def study(context: StudyContext) -> Study:
    """Return an A/A comparison; any difference between the arms is noise."""
    baseline = context.baseline
    return Study(
        name="noise-floor",
        question="How large is the noise on this machine?",
        variants=(baseline, replace(baseline, name=f"{baseline.name}-2")),
        workloads=context.workloads,
        design=context.design,
    )


STUDY = BundledStudy(
    title="the baseline against itself: this machine's noise floor",
    study=study,
)
