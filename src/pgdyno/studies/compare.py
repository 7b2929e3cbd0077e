"""Studies of variants of one installation that are defined on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.base.text import shortened
from pgdyno.measure.design.schedule import for_arms
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study, unique_names
from pgdyno.model.variants.variant import SQL, Variant, require_durable

_SQL_SHOWN = 80  # characters


def comparison(variants: tuple[Variant, ...], workloads: Iterable[str], design: Design) -> Study:
    """Return the study of every variant against the first one.

    Raises: UsageError for fewer than two variants, DurabilityError for one that may lose data.
    """
    if len(variants) < 2:
        raise UsageError(
            "a comparison needs at least two variants",
            hint="name the baseline first: pgdyno compare default big:…",
        )
    require_durable(variants)
    named = unique_names(variants)
    question = comparing_question(variants)
    return Study("compare", question, named, tuple(workloads), for_arms(len(named), design))


def comparing_question(variants: Sequence[Variant]) -> str:
    """Return the question of a comparison, without settings that all variants share; SQL is shortened."""
    shared = set.intersection(*(set(variant.settings.items()) for variant in variants))

    def own(one: Variant) -> dict[str, str]:
        pairs = (pair for pair in one.settings.items() if pair not in shared)
        return {key: shortened(value, _SQL_SHOWN) if key == SQL else value for key, value in pairs}

    baseline, *others = (str(replace(one, settings=own(one))) for one in variants)
    return f"How does {' and '.join(others)} compare with {baseline}?"


def one_alone(variant: Variant, workloads: Iterable[str], design: Design) -> Study:
    """Return the study of one variant, without a verdict. Raises: DurabilityError if it may lose data."""
    require_durable((variant,))
    return Study("bench", f"What does {variant} achieve?", (variant,), tuple(workloads), design)
