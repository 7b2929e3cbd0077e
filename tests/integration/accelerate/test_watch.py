"""A plan is tried on a running server's own traffic: Debian's PostgreSQL 15, and sessions that look up rows.

Whether a row is found by an index makes the difference: without one a lookup takes many times as long, so
that a few short pairs of periods decide. The table is just small enough to be read without parallel workers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
import pytest
from tests.fix_debian import DebianCluster, debian_cluster
from tests.fix_servers import wait_until
from tests.golden.synthetic import experiment
from tests.integration.journal_support import plan_of
from tests.integration.plan.inspection.test_start_check import access_to

from pgdyno.accelerate.attached_server import Permissions, conclude
from pgdyno.accelerate.request import Acceleration
from pgdyno.accelerate.watch import Pace, require_counted, watch_after, watch_by_turns
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import InterruptedByUserError, StillChangedError, UsageError
from pgdyno.builds.switching.variant_switch import Switch
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState
from pgdyno.measure.decisions.watch_decision import WatchState
from pgdyno.model.plans.plan import Plan
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.attached import attach
from pgdyno.plan.engine.resources import Figures

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.usefixtures("home")]

SHORT = Pace(period_s=1.5, settle_s=1.1, warm_s=0.1, back_s=120.0, pairs=6)
NO_INDEX = {"enable_indexscan": "off", "enable_bitmapscan": "off"}
BASE = Variant("as-found")


@pytest.fixture(scope="module")
def debian15() -> Iterator[DebianCluster]:
    """A cluster for all tests: each puts back what it changes."""
    with debian_cluster() as made:
        yield made


@dataclass
class Steps:
    """Remembers what was announced."""

    said: list[str] = field(default_factory=list)

    def step(self, message: str) -> None:
        self.said.append(message)

    def advance(self, done_s: float, total_s: float) -> None:
        """Nothing is drawn."""

    def close(self) -> None:
        """Nothing to end."""


@contextmanager
def traffic(cluster: DebianCluster) -> Iterator[None]:
    """Look up rows by their key, two at a time, whatever happens to the server."""
    cluster.execute("CREATE TABLE account AS SELECT id, 0 AS balance FROM generate_series(1, 200000) id")
    cluster.execute("ALTER TABLE account ADD PRIMARY KEY (id)")
    cluster.execute("VACUUM ANALYZE account")
    is_over = threading.Event()
    threads = [threading.Thread(target=look_up, args=(cluster.dsn, is_over)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
        cluster.execute("DROP TABLE account")


def look_up(dsn: str, is_over: threading.Event) -> None:
    """Plan each lookup anew: a prepared statement's plan outlives a reload."""
    while not is_over.is_set():
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection,
        ):
            while not is_over.wait(0.005):
                connection.execute("SELECT balance FROM account WHERE id = 12345")


def state(cluster: DebianCluster) -> tuple[object, ...]:
    """Return everything that must be the same afterwards."""
    return (
        cluster.execute("SELECT name, setting FROM pg_settings WHERE context <> 'internal' ORDER BY 1"),
        cluster.execute("SELECT sourcefile, name, setting, applied FROM pg_file_settings ORDER BY 1, 2"),
    )


@contextmanager
def amid_the_first_period(cluster: DebianCluster, act: Callable[[], None]) -> Iterator[None]:
    """Do something a moment after a plan with 8 MB of work_mem is in force, and wait for its end."""

    def wait_and_act() -> None:
        wait_until(lambda: cluster.execute("SHOW work_mem") == [("8MB",)])
        time.sleep(0.5)  # wherever that is: mostly while the server is only observed
        act()

    acting = threading.Thread(target=wait_and_act)
    acting.start()
    try:
        yield
    finally:
        acting.join()


def switch_to(access: ServerAccess, plan: Plan) -> tuple[Switch, Variant]:
    return Switch(access, BASE, plan, allow_restart=True), replace(BASE, name="plan", settings=plan.values)


def test_a_plan_that_harms_is_taken_back_by_itself(debian15: DebianCluster, tmp_path: Path) -> None:
    before = state(debian15)
    access = access_to(debian15, tmp_path / "journal")
    switch, plan = switch_to(access, plan_of(**NO_INDEX))
    with traffic(debian15):
        # It ends when harm is shown: more pairs take longer where a busy machine has disturbed some.
        seen = watch_by_turns(access, switch, plan, Steps(), replace(SHORT, pairs=20))
    assert (seen.state, seen.is_applied) == (WatchState.HARM, False)
    assert seen.ratio is not None
    assert seen.ratio > 1.5
    assert state(debian15) == before


@pytest.mark.long
def test_a_plan_whose_tail_is_unknown_is_tried_and_kept_where_it_does_no_harm(
    debian15: DebianCluster, tmp_path: Path
) -> None:
    for name in NO_INDEX:
        debian15.execute(f"ALTER SYSTEM SET {name} = off")
    debian15.control("reload")
    access = access_to(debian15, tmp_path / "journal")
    attached = attach(debian15.dsn, Figures())
    plan = plan_of(enable_indexscan="on", enable_bitmapscan="on")
    unknown = Acceleration(plan, PlanDecision(PlanState.TAIL_UNKNOWN, "", ()), experiment())
    allowed = Permissions(restart=True, any_workload=True, watch=SHORT)
    with traffic(debian15):
        done = conclude(attached, unknown, access, Steps(), allowed, print)
    assert done.watched is not None
    assert (done.watched.state, done.watched.is_alarm) == (WatchState.NO_HARM, False)
    assert done.applied is not None
    assert [one.key for one in done.applied.outcomes] == ["enable_indexscan", "enable_bitmapscan"]
    assert debian15.execute("SHOW enable_indexscan") == [("on",)]
    assert revert(access, RevertRequest()).is_complete
    assert debian15.execute("SHOW enable_indexscan") == [("off",)]
    for name in NO_INDEX:
        debian15.execute(f"ALTER SYSTEM RESET {name}")
    debian15.control("reload")


def test_a_server_that_restarts_while_it_is_watched_gets_back_what_was_found(
    debian15: DebianCluster, tmp_path: Path
) -> None:
    before = state(debian15)
    access = access_to(debian15, tmp_path / "journal")
    switch, plan = switch_to(access, plan_of(work_mem="8MB"))
    with amid_the_first_period(debian15, lambda: debian15.control("restart")):
        seen = watch_by_turns(access, switch, plan, Steps(), SHORT)
    assert (seen.state, seen.is_applied) == (WatchState.ENDED_EARLY, False)
    assert state(debian15) == before


def test_a_server_that_stays_away_leaves_the_line_that_undoes_the_plan(
    debian15: DebianCluster, tmp_path: Path
) -> None:
    access = access_to(debian15, tmp_path / "journal")
    switch, plan = switch_to(access, plan_of(work_mem="8MB"))
    with (
        amid_the_first_period(debian15, lambda: debian15.control("stop")),
        pytest.raises(StillChangedError) as caught,
    ):
        watch_by_turns(access, switch, plan, Steps(), replace(SHORT, back_s=1.0))
    assert caught.value.hint == "make sure that the server runs, then: pgdyno revert"
    debian15.control("start")
    assert revert(access, RevertRequest()).is_complete
    assert debian15.execute("SHOW work_mem") == [("4MB",)]


def test_after_a_kill_while_watching_revert_puts_all_back(debian15: DebianCluster, tmp_path: Path) -> None:
    before = state(debian15)
    access = access_to(debian15, tmp_path / "journal")
    switch, plan = switch_to(access, plan_of(work_mem="8MB"))
    watching = multiprocessing.get_context("fork").Process(
        target=watch_by_turns, args=(access, switch, plan, Steps(), SHORT)
    )
    watching.start()
    wait_until(lambda: debian15.execute("SHOW work_mem") == [("8MB",)])
    watching.kill()
    watching.join()
    assert revert(access, RevertRequest(is_all=True)).is_complete
    assert state(debian15) == before


def test_an_interruption_puts_back_what_was_found(debian15: DebianCluster, tmp_path: Path) -> None:
    before = state(debian15)
    access = access_to(debian15, tmp_path / "journal")
    switch, plan = switch_to(access, plan_of(work_mem="8MB"))
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run under nohup
    try:
        with (
            amid_the_first_period(debian15, lambda: os.kill(os.getpid(), signal.SIGINT)),
            pytest.raises(InterruptedByUserError),
        ):
            watch_by_turns(access, switch, plan, Steps(), SHORT)
    finally:
        signal.signal(signal.SIGINT, former)
    assert state(debian15) == before


def test_what_takes_a_restart_raises_an_alarm_and_stays(debian15: DebianCluster, tmp_path: Path) -> None:
    before = state(debian15)
    access = access_to(debian15, tmp_path / "journal")
    switch, plan = switch_to(access, plan_of(shared_buffers="96MB", **NO_INDEX))
    with traffic(debian15):
        seen = watch_after(access, lambda: switch.to(plan), Steps(), SHORT)
    assert (seen.state, seen.is_applied, seen.is_alarm) == (WatchState.HARM, True, True)
    assert debian15.execute("SHOW shared_buffers") == [("96MB",)]
    assert revert(access, RevertRequest(allow_restart=True)).is_complete
    assert state(debian15) == before


def test_a_server_without_traffic_is_not_restarted_to_be_watched(
    debian15: DebianCluster, tmp_path: Path
) -> None:
    started = debian15.execute("SELECT pg_postmaster_start_time()")
    access = access_to(debian15, tmp_path / "journal")
    switch, plan = switch_to(access, plan_of(shared_buffers="96MB"))
    seen = watch_after(access, lambda: switch.to(plan), Steps(), replace(SHORT, period_s=0.1, settle_s=0.1))
    assert (seen.state, seen.is_applied) == (WatchState.TOO_LITTLE, False)
    assert debian15.execute("SELECT pg_postmaster_start_time()") == started


def test_a_server_that_counts_nothing_is_refused_before_anything_is_measured(
    debian15: DebianCluster, tmp_path: Path
) -> None:
    access = access_to(debian15, tmp_path / "journal")
    require_counted(access)
    debian15.execute("ALTER SYSTEM SET track_activities = off")
    debian15.control("reload")
    with pytest.raises(UsageError) as caught:
        require_counted(access)
    debian15.execute("ALTER SYSTEM RESET track_activities")
    debian15.control("reload")
    assert str(caught.value) == (
        "this server's own traffic cannot be observed\n"
        "DETAIL:  pg_stat_database: track_activities or track_counts is off\n"
        "HINT:  leave out --tail watch; it needs PostgreSQL 14, track_activities and track_counts"
    )
