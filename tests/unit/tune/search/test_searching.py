"""A search from its first to its last trial, on landscapes that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import Dimension, Point, RoundRatios, Space, Trial, TrialRound, TrialState
from pgdyno.tune.search.race import MOST_ROUNDS
from pgdyno.tune.search.samplers import load
from pgdyno.tune.search.searching import CandidateFailedError, CandidateOverLimitError, search

SPACE = Space(
    (
        Dimension("plan_cache_mode", Layer.APPLICATION, ("force_generic_plan",), "auto"),
        Dimension("work_mem", Layer.APPLICATION, ("16MB", "64MB"), "4MB", planned="64MB"),
        Dimension("jit", Layer.APPLICATION, ("off",), "on", planned="off"),
    )
)
EFFECTS = {("plan_cache_mode", "force_generic_plan"): 0.2, ("work_mem", "64MB"): -0.05, ("jit", "off"): 0.01}


@dataclass
class Machine:
    """Measures points whose effects are known, with noise; ``broken`` do not start."""

    noise: float = 0.005
    broken: Point = field(default_factory=dict)
    measured: list[Point] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def __call__(self, incumbent: Point, candidate: Point) -> TrialRound:
        self.measured.append(candidate)
        if self.broken.items() & candidate.items():
            raise CandidateFailedError("the server did not start")
        noises = map(float, self.random.normal(0, self.noise / 2**0.5, 3))
        default, old, new = (
            sum(EFFECTS.get(pair, 0.0) for pair in point.items()) + noise
            for point, noise in zip(({}, incumbent, candidate), noises, strict=True)
        )
        return TrialRound(new - old, new - default, old - default)


def allowed(_: Point) -> str:
    return ""


def found(
    machine: Machine,
    count: int,
    sampler: str = "guided",
    why_not: Callable[[Point], str] = allowed,
    earlier: Iterable[Trial] = (),
    kept: list[Trial] | None = None,
) -> list[Trial]:
    keep = [] if kept is None else kept
    trials = search(load()[sampler].make(SPACE, 1), machine, keep.append, why_not, tuple(earlier))
    return [trial for _, trial in zip(range(count), trials, strict=False)]


def best_of(trials: Iterable[Trial]) -> Point:
    return [one.point for one in trials if one.state is TrialState.WON][-1]


def test_the_plan_is_the_first_trial() -> None:
    assert found(Machine(), 1)[0].point == {"work_mem": "64MB", "jit": "off"}


def test_the_large_gain_is_found_and_the_harm_of_the_plan_undone() -> None:
    best = best_of(found(Machine(), 11))
    assert best["plan_cache_mode"] == "force_generic_plan"
    assert best.get("work_mem") != "64MB"


def test_nothing_wins_where_nothing_differs() -> None:
    winners = 0
    for seed in range(40):
        flat = Machine(noise=0.01, random=np.random.default_rng(seed))
        trials = search(
            load()["random"].make(SPACE, seed),
            lambda _incumbent, _candidate, flat=flat: flat({}, {}),
            lambda _: None,
            allowed,
        )
        winners += any(one.state is TrialState.WON for _, one in zip(range(8), trials, strict=False))
    assert winners <= 12  # of 320 races, each wrong in at most one of twenty


def test_no_point_is_measured_as_a_second_trial_and_the_search_ends_with_the_space() -> None:
    trials = found(Machine(), 100, sampler="random")
    points = [tuple(sorted(one.point.items())) for one in trials]
    assert len(points) == len(set(points)) == SPACE.points - 1  # the default is no trial


def test_a_server_that_does_not_start_is_recorded_and_the_search_goes_on() -> None:
    trials = found(Machine(broken={"jit": "off"}), 8)
    assert trials[0].state is TrialState.FAILED
    assert trials[0].reason == "the server did not start"
    assert best_of(trials)["plan_cache_mode"] == "force_generic_plan"
    assert "jit" not in best_of(trials)


@dataclass
class Tight(Machine):
    """A machine whose server goes over a limit with jit off."""

    def __call__(self, incumbent: Point, candidate: Point) -> TrialRound:
        if candidate.get("jit") == "off":
            self.measured.append(candidate)
            raise CandidateOverLimitError("the 99th percentile was 31 ms")
        return super().__call__(incumbent, candidate)


def test_a_candidate_over_a_limit_is_recorded_and_never_tried_again() -> None:
    machine = Tight()
    trials = found(machine, 8)
    over = [one for one in trials if one.state is TrialState.OVER_LIMIT]
    assert over[0].reason == "the 99th percentile was 31 ms"
    assert all(one.gain is None and not one.rounds for one in over)
    points = [frozenset(one.point.items()) for one in over]
    assert len(points) == len(set(points))
    assert "jit" not in best_of(trials)


LOPSIDED = {"plan_cache_mode": {"read-only": 0.5, "read-write": -0.2}, "jit": {"read-write": 0.1}}


def two_workloads(incumbent: Point, candidate: Point, scale: float = 0.001) -> TrialRound:
    """Return a round on a machine almost without noise, where generic plans harm one of two workloads."""
    random = np.random.default_rng(len(incumbent) + 10 * len(candidate))
    found = {}
    for name in ("read-only", "read-write"):
        old, new = (
            sum(LOPSIDED.get(key, {}).get(name, 0.0) for key in point) + float(random.normal(0, scale))
            for point in (incumbent, candidate)
        )
        found[name] = RoundRatios(new - old, new, old)
    leads, gains = (
        sum(values) / 2
        for values in zip(*((one.to_incumbent, one.to_default) for one in found.values()), strict=True)
    )
    return TrialRound(leads, gains, gains - leads, found)


def test_what_is_slower_on_a_workload_does_not_take_the_place_however_fast_it_is_in_the_mean() -> None:
    sampler = load()["guided"].make(SPACE, 1)
    trials = search(sampler, two_workloads, lambda _: None, allowed)
    tried = [trial for _, trial in zip(range(11), trials, strict=False)]
    lopsided = [one for one in tried if "plan_cache_mode" in one.point]
    assert lopsided
    assert {one.state for one in lopsided} == {TrialState.LOST}
    assert {one.reason for one in lopsided} <= {"slower on read-write", ""}
    assert any(one.reason and one.gain and one.gain > 0.1 for one in lopsided)
    assert best_of(tried)["jit"] == "off"


@pytest.mark.parametrize(
    ("loss", "rounds", "state"),
    [
        (-0.12, 3, TrialState.LOST),  # shown after three rounds, by the bound at a noise of 4 % at first
        (-0.07, MOST_ROUNDS, TrialState.WON),  # never shown
        (-0.01, 1, TrialState.WON),
    ],
)
def test_a_loss_that_is_not_shown_takes_more_rounds_before_the_place_is_given(
    loss: float, rounds: int, state: TrialState
) -> None:
    def measure(incumbent: Point, candidate: Point) -> TrialRound:
        assert (incumbent, candidate) == ({}, SPACE.plan)
        found = {"read-only": RoundRatios(0.4, 0.4, 0.0), "read-write": RoundRatios(loss, loss, 0.0)}
        return TrialRound(0.165, 0.165, 0.0, found)

    first = next(search(load()["guided"].make(SPACE, 1), measure, lambda _: None, allowed))
    assert (len(first.rounds), first.state) == (rounds, state)
    assert first.reason == ("slower on read-write" if state is TrialState.LOST else "")


def test_a_refused_point_is_never_measured() -> None:
    machine = Machine()
    trials = found(machine, 8, why_not=lambda point: "too large" if "work_mem" in point else "")
    assert {one.state for one in trials if "work_mem" in one.point} == {TrialState.REFUSED}
    assert not any("work_mem" in point for point in machine.measured)


def test_an_interrupted_search_goes_on_with_the_next_number_and_asks_for_nothing_again() -> None:
    first = found(Machine(), 3)
    later = found(Machine(), 2, earlier=first)
    assert [one.number for one in later] == [4, 5]
    assert not any(one.point in [earlier.point for earlier in first] for one in later)


def test_every_round_is_kept_before_the_next_begins() -> None:
    kept: list[Trial] = []
    trials = found(Machine(), 3, kept=kept)
    assert len(kept) == sum(len(one.rounds) for one in trials)
    assert kept[-1] == trials[-1]


def test_no_further_round_begins_when_time_is_over_and_the_trial_ends_as_it_stands() -> None:
    clock = iter([False, True])

    def even(incumbent: Point, candidate: Point) -> TrialRound:
        assert (incumbent, candidate) == ({}, SPACE.plan)
        return TrialRound(0.0, 0.0, 0.0)

    trials = search(load()["guided"].make(SPACE, 1), even, lambda _: None, allowed, (), lambda: next(clock))
    first = next(trials)
    assert (len(first.rounds), first.state) == (2, TrialState.CLOSE)


def test_what_the_bound_says_counts_when_time_is_over() -> None:
    def faster(_incumbent: Point, candidate: Point) -> TrialRound:
        lead = 0.3 if candidate else 0.0
        return TrialRound(lead, lead, 0.0)

    sampler = load()["guided"].make(SPACE, 1)
    trials = search(sampler, faster, lambda _: None, allowed, (), lambda: True)  # type: ignore[arg-type]
    first = next(trials)
    assert (len(first.rounds), first.state) == (1, TrialState.WON)


def test_a_space_of_which_nothing_may_be_tried_ends_the_search() -> None:
    trials = found(Machine(), 1000, sampler="random", why_not=lambda _: "it does not fit into memory")
    assert len(trials) == SPACE.points - 1
    assert {one.state for one in trials} == {TrialState.REFUSED}
