"""Terms by which a plan is said to pay, and names of the variants that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.plans.plan import PER_APPLICATION

PLAN = "plan"
"""The variant with the whole plan."""

RELOAD_GAIN, RESTART_GAIN, PROGRAMS_GAIN = 0.01, 0.02, 0.05
"""The worthwhile gain of throughput, by the most that a plan takes. Decision 33 says why a reload has one."""

WHOLE_STACK = "whole-stack"
"""The variant with the plan and a build of PostgreSQL, where one with the plan alone stands beside it."""

SETTINGS_ALONE = "plan-settings"
"""The variant with the plan's settings that any application may have, and nothing of its host layer."""

WITH_HOST = "-with-host"
"""How the name of another tool's configuration ends that has the plan's host layer besides."""

WITHOUT = "without-"
"""What the name of the plan without a part of it begins with: a layer, a lever, or settings, follow."""

ONLY = "only-"
"""What the name of the baseline with one part of the plan begins with."""


def without_per_application(names: Sequence[str]) -> str:
    """Return the name of the variant without per-application settings."""
    return WITHOUT + "+".join(names)


def left_out_per_application(variant: str) -> tuple[str, ...]:
    """Return the settings that a variant leaves out because they suit only some applications."""
    names = tuple(variant.removeprefix(WITHOUT).split("+"))
    return names if variant.startswith(WITHOUT) and PER_APPLICATION.issuperset(names) else ()


def applied_of(variants: Sequence[str]) -> str:
    """Return the name of the variant to be applied: the plan without some settings, if it is there."""
    return next(filter(left_out_per_application, variants), PLAN)


@dataclass(frozen=True)
class Terms:
    """Requirements of a plan, as shares: 0.05 = 5 %.

    ``min_gain`` is the gain of throughput that makes the change worth while; no workload may have lost more
    than ``max_loss`` of it. On none the mean of the slowest 5 % of transactions may be longer by more than
    ``max_tail_loss``, nor the 99th percentile by more than ``max_p99_loss``; nor that mean by more than
    ``max_stretch_loss`` while it alone has load. With ``looks`` above 1 the
    experiment may have ended in favour of a plan before its last round.
    """

    min_gain: float = 0.0
    max_loss: float = 0.05
    max_tail_loss: float = 0.10
    max_p99_loss: float = 0.25
    max_stretch_loss: float = 0.50
    looks: int = 1
