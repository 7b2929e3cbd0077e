"""Runs a bundled study by name, or an experiment file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.app.measure import Conditions, find_workloads, measure, require_durable
from pgdyno.app.planning import inspect_scratch, plan_for
from pgdyno.levers.planner import PlanRequest
from pgdyno.levers.resources import Figures
from pgdyno.model.errors import UsageError
from pgdyno.model.experiment import Experiment
from pgdyno.model.ports import Progress
from pgdyno.model.study import cross, unique_names
from pgdyno.model.variant import Variant
from pgdyno.store.experiment_file import read_experiment_file
from pgdyno.studies import StudyModule
from pgdyno.studies import load as bundled_studies
from pgdyno.studies._contract import StudyContext


def listing() -> list[tuple[str, str]]:
    """Return the name and title of every bundled study."""
    return [(name, module.TITLE) for name, module in bundled_studies().items()]


def find_study(name: str) -> StudyModule:
    """Return a bundled study. Raises: UsageError for an unknown name."""
    known = bundled_studies()
    if name not in known:
        raise UsageError(
            f'no study "{name}", and no file of that name',
            hint=f"known: {', '.join(known)}; see pgdyno run --list",
        )
    return known[name]


def run_file(path: Path, conditions: Conditions, scale: int | None, progress: Progress) -> Experiment:
    """Run the experiment in a TOML file; its design and workloads hold."""
    study = read_experiment_file(path)
    workloads = find_workloads(study.workloads, (), scale)
    own = replace(conditions, workloads=workloads, design=study.design)
    return measure(study, own, progress)


def run_bundled(
    name: str, conditions: Conditions, factors: Mapping[str, Sequence[str]], progress: Progress
) -> Experiment:
    """Run a bundled study; ``factors`` replaces its variants by their combinations.

    A factor called ``server`` varies the PostgreSQL that runs.
    """
    module, baseline = find_study(name), Variant("default")
    if module.NEEDS_PLAN:
        subject = inspect_scratch(baseline, conditions, Figures(), progress)
        context = plan_for(subject, baseline, conditions, PlanRequest()).study_context
    else:
        context = StudyContext(baseline, tuple(conditions.workloads), conditions.design)
    study = module.study(context)
    if factors:
        study = replace(study, variants=unique_names(cross(factors, baseline)))
        require_durable(study.variants)
    return measure(study, conditions, progress)
