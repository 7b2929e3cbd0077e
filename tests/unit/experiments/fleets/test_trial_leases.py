"""Leases: exactly one answer counts, whatever the order of answers, failures and losses."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.experiments.fleets.trial_leases import (
    MOST_ATTEMPTS,
    answered,
    due,
    failed,
    given_back,
    heard_lately,
    leased,
    lost,
)
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState

NEW = FleetTrial("db1", 1)

events = st.lists(
    st.one_of(
        st.just(("lease", 0)),
        st.tuples(st.sampled_from(["answer", "fail", "give back"]), st.integers(0, 5)),
    ),
    max_size=30,
)


@given(events)
def test_exactly_one_answer_counts_in_any_order_of_events(happening: list[tuple[str, int]]) -> None:
    trial, counted, leases, failures = NEW, [], 0, 0
    for what, lease in happening:
        if what == "lease":
            if trial.state is FleetTrialState.WAITING:
                trial, leases = leased(trial), leases + 1
            continue
        was = trial
        step = {"answer": answered, "fail": failed}.get(what)
        after = given_back(trial, lease) if step is None else step(trial, lease, f"of lease {lease}")
        is_current = was.state is FleetTrialState.LEASED and lease == leases
        assert (after is not None) == is_current
        if after is not None:
            trial = after
            counted += [lease] * (what == "answer")
            failures += what == "fail"
    assert len(counted) <= 1
    assert (trial.state is FleetTrialState.DONE) == (len(counted) == 1)
    assert trial.experiment == (f"of lease {counted[0]}" if counted else None)
    assert trial.lease == leases
    assert trial.attempts == failures <= MOST_ATTEMPTS
    assert (trial.state is FleetTrialState.FAILED) == (failures == MOST_ATTEMPTS and not counted)


def test_a_second_answer_to_the_same_lease_does_not_count() -> None:
    done = answered(leased(NEW), 1, "first")
    assert done == FleetTrial("db1", 1, FleetTrialState.DONE, lease=1, experiment="first")
    assert answered(done, 1, "second") is None


def test_the_third_failure_is_the_last_and_its_reason_stays() -> None:
    trial = NEW
    for attempt in (1, 2, 3):
        trial = leased(trial)
        after = failed(trial, attempt, f"failure {attempt}")
        assert after is not None
        trial = after
    assert (trial.state, trial.attempts, trial.reason) == (FleetTrialState.FAILED, 3, "failure 3")


def test_a_reason_is_cut_off() -> None:
    after = failed(leased(NEW), 1, "x" * 1_000_000)
    assert after is not None
    assert len(after.reason or "") == 2000


def test_what_is_given_back_counts_as_no_attempt() -> None:
    back = given_back(leased(NEW), 1)
    assert back == replace(NEW, lease=1)


def test_a_machine_has_one_lease_at_a_time_and_needs_a_worker() -> None:
    trials = [
        FleetTrial("db1", 1, FleetTrialState.LEASED, lease=1),
        FleetTrial("db1", 2),
        FleetTrial("db2", 1, attempts=1),
        FleetTrial("db2", 2),
        FleetTrial("db3", 1),
    ]
    assert [*due(trials, {"db1", "db2"})] == [trials[3]]
    assert [*due(trials, {"db1", "db2", "db3"})] == [trials[4], trials[3]]


def test_a_lease_ends_three_minutes_after_the_last_sign_of_life() -> None:
    trials = [FleetTrial(name, 1, FleetTrialState.LEASED, lease=1) for name in ("db1", "db2")]
    heard = heard_lately({"db1": 0.0, "db2": 0.5}, 180.25)
    assert heard == {"db2"}
    assert [*lost(trials, heard)] == [trials[0]]
