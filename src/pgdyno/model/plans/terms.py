"""Requirements for a plan to pay, and names of the variants measured to decide that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.plans.plan import PER_APPLICATION

PLAN = "plan"
"""The variant with the whole plan."""

RELOAD_GAIN, RESTART_GAIN, PROGRAMS_GAIN = 0.01, 0.02, 0.05
"""The worthwhile gain of throughput, by what the plan requires. Decision 33 explains that of a reload."""

WHOLE_STACK = "whole-stack"
"""The variant with the plan and a build of PostgreSQL, if the plan alone is a separate variant."""

SETTINGS_ALONE = "plan-settings"
"""The variant with the plan's settings that suit any application, without its host layer."""

WITH_HOST = "-with-host"
"""Suffix of the name of another tool's configuration combined with the plan's host layer."""

WITHOUT = "without-"
"""Prefix of the name of the plan without a part: a layer, a lever, or settings."""

ONLY = "only-"
"""Prefix of the name of the baseline with one part of the plan."""


def without_per_application(names: Sequence[str]) -> str:
    """Return the name of the variant without per-application settings."""
    return WITHOUT + "+".join(names)


def left_out_per_application(variant: str) -> tuple[str, ...]:
    """Return the per-application settings left out of a variant; empty if it is not such a variant."""
    names = tuple(variant.removeprefix(WITHOUT).split("+"))
    return names if variant.startswith(WITHOUT) and PER_APPLICATION.issuperset(names) else ()


def applied_of(variants: Sequence[str]) -> str:
    """Return the name of the variant to apply: the plan without per-application settings, if measured."""
    return next(filter(left_out_per_application, variants), PLAN)


@dataclass(frozen=True)
class Terms:
    """Requirements of a plan, as shares: 0.05 = 5 %.

    ``min_gain`` is the worthwhile gain of throughput. On every workload, the losses are limited:
    ``max_loss`` of throughput, ``max_tail_loss`` of the mean of the slowest 5 % of transactions,
    ``max_p99_loss`` of the 99th percentile, and ``max_stretch_loss`` of the mean of the slowest 5 % while no
    other server has load. With ``looks`` above 1 the experiment may end early in favour of a plan.
    """

    min_gain: float = 0.0
    max_loss: float = 0.05
    max_tail_loss: float = 0.10
    max_p99_loss: float = 0.25
    max_stretch_loss: float = 0.50
    looks: int = 1
