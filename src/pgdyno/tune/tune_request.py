"""A request to tune, and the division of its time."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgdyno.measure.conditions import Conditions
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.tune.search.samplers import USUAL

NAME = "tune"
SEARCH_SHARE = 0.55  # arbitrary: share of the budget at which the search ends
SHORTEN_SHARE = 0.75  # arbitrary: share at which shortening ends; the rest is for the proof


@dataclass(frozen=True)
class TuneRequest:
    """A request to tune. ``base`` is the configuration as found, on scratch servers of ``conditions``.

    ``most_trials`` None: as many as the time for searching allows. ``resume``: the id of a search to resume.
    ``is_attributed``: the proof also measures every part of the answer alone, and the answer without it.
    ``warm_start``: earlier searches and experiments; their configurations are tried right after the plan.
    """

    conditions: Conditions
    base: Variant
    budget_s: float
    plan: PlanRequest = field(default_factory=PlanRequest)
    sampler: str = USUAL
    most_trials: int | None = None
    resume: str | None = None
    is_attributed: bool = False
    warm_start: tuple[str, ...] = ()
