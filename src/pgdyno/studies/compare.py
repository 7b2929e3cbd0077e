"""Compares variants of one installation: a study defined on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.design.schedule import for_arms
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.study import Study, unique_names
from pgdyno.model.variants.variant import Variant, require_durable


def compare(variants: tuple[Variant, ...], conditions: Conditions, progress: Progress) -> Experiment:
    """Measure every variant against the first one.

    Raises: UsageError for fewer than two variants, DurabilityError for one that may lose data; errors of
    measuring.
    """
    if len(variants) < 2:
        raise UsageError(
            "a comparison needs at least two variants",
            hint="name the baseline first: pgdyno compare default big:…",
        )
    require_durable(variants)
    named = unique_names(variants)
    design = for_arms(len(named), conditions.design)
    study = Study("compare", comparing_question(variants), named, tuple(conditions.workloads), design)
    return measure(study, conditions, progress)


def comparing_question(variants: Sequence[Variant]) -> str:
    """Return the question of a comparison, without the settings that all variants share."""
    shared = set.intersection(*(set(variant.settings.items()) for variant in variants))
    baseline, *others = (
        str(replace(one, settings={k: v for k, v in one.settings.items() if (k, v) not in shared}))
        for one in variants
    )
    return f"How does {' and '.join(others)} compare with {baseline}?"


def bench(variant: Variant, conditions: Conditions, progress: Progress) -> Experiment:
    """Measure one variant alone. The result has figures and their spread, but no verdict."""
    require_durable((variant,))
    question = f"What does {variant} achieve?"
    study = Study("bench", question, (variant,), tuple(conditions.workloads), conditions.design)
    return measure(study, conditions, progress)
