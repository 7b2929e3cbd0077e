"""``accelerate --dsn`` applies a plan only if it pays and the server's owner has allowed all of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment, plan

from pgdyno.accelerate.attached_server import Permissions, _reason_not_to_apply
from pgdyno.accelerate.request import Acceleration
from pgdyno.accelerate.watch import Pace
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState
from pgdyno.model.experiments.likeness import Likeness

ALL = Permissions(restart=True, any_workload=True)


def done(state: PlanState) -> Acceleration:
    return Acceleration(plan(), PlanDecision(state, "", ()), experiment())


@pytest.mark.parametrize("state", [state for state in PlanState if state is not PlanState.PAYS])
def test_no_other_state_than_pays_is_applied(state: PlanState) -> None:
    reason = _reason_not_to_apply(done(state), ALL)
    hint = "; --tail watch tries it on the server" if state is PlanState.TAIL_UNKNOWN else ""
    assert reason == f'it is applied only if it pays, and the decision is "{state.value}"{hint}'


@pytest.mark.parametrize("state", [state for state in PlanState if state is not PlanState.PAYS])
def test_where_it_may_be_watched_an_unknown_tail_is_tried_as_well(state: PlanState) -> None:
    reason = _reason_not_to_apply(done(state), replace(ALL, watch=Pace()))
    assert (reason is None) == (state is PlanState.TAIL_UNKNOWN)


@pytest.mark.parametrize(
    ("allowed", "why"),
    [
        (Permissions(restart=True, watch=Pace()), "it is faster on sysbench-read-only and"),
        (Permissions(any_workload=True, watch=Pace()), "it needs a restart, which was not allowed"),
    ],
)
def test_a_watch_replaces_no_other_permission(allowed: Permissions, why: str) -> None:
    reason = _reason_not_to_apply(done(PlanState.TAIL_UNKNOWN), allowed)
    assert reason is not None
    assert reason.startswith(why)


def test_a_plan_that_pays_is_applied_where_everything_is_allowed() -> None:
    assert _reason_not_to_apply(done(PlanState.PAYS), ALL) is None


def test_a_bundled_workload_is_no_proof_for_somebodys_own() -> None:
    reason = _reason_not_to_apply(done(PlanState.PAYS), replace(ALL, any_workload=False))
    assert reason == (
        "it pays on sysbench-read-only and sysbench-read-write, which is not this server's own workload; "
        "add --yes, or run pgdyno apply"
    )


@pytest.mark.parametrize(
    ("likeness", "how"),
    [
        (0.94, "a replay of the captured workload (likeness 0.94)"),
        (0.4, "an approximate replay of the captured workload (likeness 0.40)"),
    ],
)
def test_a_captured_workload_is_as_good_a_proof_as_it_is_like_its_original(likeness: float, how: str) -> None:
    paying = done(PlanState.PAYS)
    alike = {name: Likeness({"calls": 0.99, "time": likeness}, ()) for name in paying.experiment.workloads}
    paying = replace(paying, experiment=replace(paying.experiment, likenesses=alike))
    reason = _reason_not_to_apply(paying, replace(ALL, any_workload=False))
    assert reason == (
        f"it pays on sysbench-read-only and sysbench-read-write, {how}; add --yes, or run pgdyno apply"
    )


def test_a_restart_has_to_be_allowed() -> None:
    reason = _reason_not_to_apply(done(PlanState.PAYS), replace(ALL, restart=False))
    assert reason is not None
    assert reason.startswith("it needs a restart, which was not allowed")
