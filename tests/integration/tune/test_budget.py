"""``tune --dsn --allow-load``: a search on a running server, which is left as it was found."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fix_debian import DebianCluster
from tests.fix_home import pgdyno
from tests.fix_rounds import WHATEVER_ELSE_RUNS
from tests.integration.accelerate.test_in_place import (
    kill_while_changed,
    restart_command,
    state,
)
from tests.integration.tune.test_tune import EnoughError, Heard, latest_search

from pgdyno.apply.session.session import LOADING, take
from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.builds.switching.server_access import server_access
from pgdyno.builds.switching.variant_switch import Switch
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.limited_load import LimitedLoads
from pgdyno.measure.arenas.opening import open_attached_arena
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.plan import SETTING, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.model.tuning.tuning import OwnerLimits, Space, Trial, TrialState
from pgdyno.plan.attached import attach
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.plan.engine.resources import Figures
from pgdyno.postgres.process.workload_databases import WorkloadDatabases
from pgdyno.tune.budget import RoundsInPlace, design_in_place
from pgdyno.tune.search.searching import CandidateOverLimitError
from pgdyno.tune.tune_in_place import Allowed, tune_in_place
from pgdyno.tune.tune_request import TuneRequest
from pgdyno.tune.tuner import Tuned
from pgdyno.workload.workload_choice import find_workloads

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.usefixtures("home")]

SHORT = Design(block_s=0.5, warmup_s=0.2, clients=1, thresholds=WHATEVER_ELSE_RUNS)
SHORTEST = replace(SHORT, rounds=1, blocks_per_round=1)  # where no verdict is needed
DELAY = "commit_delay"
"""Each commit waits so many us for others: a latency that no machine can be faster than."""


class AfterATrial(Heard):
    """Ends the search after its first trial."""

    def tried(self, trial: Trial) -> None:
        super().tried(trial)
        raise EnoughError


def tuned(
    cluster: DebianCluster,
    allowed: Allowed,
    restart: str | None = None,
    design: Design = SHORTEST,
    listener: Heard | None = None,
) -> Tuned:
    attached = attach(cluster.dsn, Figures())
    conditions = Conditions(attached.installation, find_workloads(("pgbench-select",), (), 1), design)
    plan = PlanRequest(layers=(Layer.APPLICATION,))
    request = TuneRequest(conditions, attached.base, budget_s=1.0, plan=plan, most_trials=1)
    access = server_access(cluster.dsn, restart)
    return tune_in_place(attached, request, access, Lines(), listener or Heard(), allowed)


def test_the_answer_is_proven_on_the_server_itself_which_is_left_as_found(debian15: DebianCluster) -> None:
    # A row is looked for in the whole table: the plan's value is a hundred times faster.
    debian15.execute("ALTER SYSTEM SET random_page_cost = 100000")
    debian15.control("reload")
    before = state(debian15)
    done = tuned(debian15, Allowed(OwnerLimits()), design=SHORT)
    assert state(debian15) == before
    assert [one.state for one in done.tuning.trials] == [TrialState.WON]
    assert done.tuning.answer["random_page_cost"] == "1.1"
    assert "shared_buffers" not in done.tuning.answer
    assert any("not brought into force by a reload" in note for note in done.tuning.notes)
    assert done.experiment is not None
    assert [one.name for one in done.experiment.variants] == ["as-found", "tuned"]
    throughput = next(one for one in done.experiment.verdicts if one.metric == "throughput_tps")
    assert throughput.effect is not None
    assert throughput.effect > 2
    assert throughput.decision is Decision.BETTER or throughput.is_withheld  # its rounds may drift
    ran = {(s.variant, s.name): s.effective for s in done.experiment.settings}
    assert ran["as-found", "random_page_cost"] == "100000"
    assert ran["tuned", "random_page_cost"] == "1.1"


def test_with_a_maintenance_window_what_takes_a_restart_is_one_change(
    debian15_as_found: DebianCluster,
) -> None:
    before = state(debian15_as_found)
    heard = AfterATrial()  # a proof would only restart the server more often
    with pytest.raises(EnoughError):
        tuned(
            debian15_as_found,
            Allowed(OwnerLimits(), restart=True),
            restart_command(debian15_as_found),
            listener=heard,
        )
    assert state(debian15_as_found) == before
    at_start = {
        name
        for (name,) in debian15_as_found.execute("SELECT name FROM pg_settings WHERE context = 'postmaster'")
    }
    restarting = [one for one in latest_search().space.dimensions if one.key in at_start]
    assert len(restarting) == 1
    assert "shared_buffers" in {restarting[0].key, *restarting[0].brings}
    assert restarting[0].key in heard.trials[0].point
    assert heard.trials[0].rounds


def test_a_restart_that_nobody_said_how_to_make_is_refused(debian15_as_found: DebianCluster) -> None:
    with pytest.raises(UsageError, match="allows restarts, but pgdyno does not know how to restart"):
        tuned(debian15_as_found, Allowed(OwnerLimits(), restart=True))


def test_a_server_that_is_over_a_limit_as_found_is_not_searched_on(debian15_as_found: DebianCluster) -> None:
    before = state(debian15_as_found)
    with pytest.raises(RefusedError) as caught:
        tuned(debian15_as_found, Allowed(OwnerLimits(memory_bytes=1 << 20)))
    assert caught.value.message == "the server exceeds a limit in its original configuration, under this load"
    assert caught.value.detail is not None
    assert caught.value.detail.endswith("in memory, and --limit-memory is 1\u00a0MB")
    assert state(debian15_as_found) == before


def test_a_trial_over_a_limit_is_ended_and_its_values_are_put_back_at_once(debian15: DebianCluster) -> None:
    debian15.execute("ALTER SYSTEM SET commit_siblings = 0")
    debian15.control("reload")
    before = state(debian15)
    attached = attach(debian15.dsn, Figures())
    change = Change("commit_delay", SETTING, DELAY, "0", "0", Effect.RELOAD)
    plan = Plan((PlanLine(change, Layer.APPLICATION, "", "", Risk.SAFE, ""),), (), (), None)
    switch = Switch(server_access(debian15.dsn), attached.base, plan, allow_restart=False)
    place = (attached.dsn, attached.data_directory, attached.installation)
    limits, exempt = OwnerLimits(latency_ms=50.0), frozenset({"default"})
    limited = partial(LimitedLoads.of, limits=limits, exempt=exempt)
    workloads = find_workloads(("pgbench-tpcb",), (), 1)
    design = design_in_place(replace(SHORT, block_s=2.0), limits)
    with open_attached_arena(*place, switch, Lines(), limited) as arena:
        arena.load(attached.base, workloads["pgbench-tpcb"].data_set)
        rounds = RoundsInPlace(
            arena, attached.base, Space(()), workloads, design, Lines(), restore=switch.back
        )
        with pytest.raises(CandidateOverLimitError) as caught:
            rounds.trial({}, {DELAY: "100000"})
        assert str(caught.value).startswith("the 99th percentile of pgbench-tpcb was ")
        assert str(caught.value).endswith("\u00a0ms, and --limit-latency is 50\u00a0ms")
        assert debian15.execute("SHOW commit_delay") == [("0",)]
        assert rounds.why_not(lambda _: "")({DELAY: "100000"}) == str(caught.value)
        assert rounds.why_not(lambda _: "")({DELAY: "10"}) == ""
    assert state(debian15) == before


def test_between_trials_the_server_has_what_was_found(debian15_as_found: DebianCluster) -> None:
    attached = attach(debian15_as_found.dsn, Figures())
    change = Change("commit_delay", SETTING, DELAY, "0", "0", Effect.RELOAD)
    plan = Plan((PlanLine(change, Layer.APPLICATION, "", "", Risk.SAFE, ""),), (), (), None)
    switch = Switch(server_access(debian15_as_found.dsn), attached.base, plan, allow_restart=False)
    place = (attached.dsn, attached.data_directory, attached.installation)
    data_set = find_workloads(("pgbench-select",), (), 1)["pgbench-select"].data_set
    tried = replace(attached.base, name="candidate", settings={**attached.base.settings, DELAY: "100"})
    with open_attached_arena(*place, switch, Lines()) as arena:
        arena.load(attached.base, data_set)
        arena.restore([tried], [0], data_set)
        with arena.arms([tried], [0], data_set):
            assert debian15_as_found.execute("SHOW commit_delay") == [("100",)]
        assert debian15_as_found.execute("SHOW commit_delay") == [("0",)]
        with pytest.raises(ZeroDivisionError), arena.arms([tried], [0], data_set):
            raise ZeroDivisionError
        assert debian15_as_found.execute("SHOW commit_delay") == [("0",)]


def test_killed_while_a_candidate_is_measured_it_is_reverted(debian15: DebianCluster, home: Path) -> None:
    before = state(debian15)
    kill_while_changed(("tune", "--dsn", debian15.dsn), home, 1.0)
    done = pgdyno("revert", "--dsn", debian15.dsn, "--all")
    assert done.returncode == 0, done.stderr
    assert state(debian15)[:2] == before[:2]
    with WorkloadDatabases(debian15.dsn, home / "databases", partial(take, lock=LOADING)).held():
        assert state(debian15) == before
