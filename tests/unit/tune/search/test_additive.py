"""Effects of single values from trials of many."""

from __future__ import annotations

from tests.unit.tune.search.test_searching import SPACE, allowed, two_workloads

from pgdyno.tune.search.additive import effects_of
from pgdyno.tune.search.samplers import load
from pgdyno.tune.search.searching import search


def test_a_sampler_goes_by_the_workload_that_a_trial_lost_on() -> None:
    sampler = load()["guided"].make(SPACE, 1)
    trials = search(sampler, two_workloads, lambda _: None, allowed)
    tried = [trial for _, trial in zip(range(11), trials, strict=False)]
    with_reason = next(one for one in tried if one.reason)
    assert with_reason.score is not None
    assert with_reason.score < -0.05
    effects = effects_of(SPACE, tried)
    place = effects.pairs.index(("plan_cache_mode", "force_generic_plan"))
    assert effects.mean[place] < -0.1
