"""A switch, or a revert of one, that is killed at any step is undone by the next revert.

Every step takes minutes: `make test` kills after the first one, after the last one, and wherever the kind of
operation changes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_debian import VERSION, DebianCluster
from tests.integration.journal_support import access_to
from tests.integration.killed_at_step import SOME_OR_EVERY, at_steps, driving
from tests.integration.switch.programs import (
    PROGRAMS,
    Linked,
    described,
    is_as_before,
    is_reverted,
    pg_ctl_conf,
    running,
)

from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.apply.session.restart import command_restarter
from pgdyno.model.plans.plan import PG_CTL_OPTIONS, PROGRAM_LINK
from pgdyno.postgres.connection.connection import connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.root]


@SOME_OR_EVERY
@pytest.mark.parametrize("action", ["apply", "revert"])
def test_a_switch_killed_at_any_step_is_undone_by_revert(
    linked: Linked, other: Path, tmp_path: Path, action: str, *, every: bool
) -> None:
    """And a revert that is killed is finished by the next one: the former programs run, through the link."""
    access = access_to(linked.server, tmp_path)
    access = replace(access, restarter=command_restarter([str(linked.restart)], access.connect))

    def act(journal: Path, step: int | None) -> list[str]:
        if action == "revert":
            assert drive("apply", journal) == "done"
            assert running(linked.server) == other / "bin/postgres"
        return drive.steps(action, journal, kill_after=step)

    def is_undone(journal: Path) -> bool:
        return is_reverted(replace(access, journal_directory=journal)) and is_as_before(linked)

    with driving(
        linked.server,
        restart_command=[str(linked.restart)],
        settings={"work_mem": "8MB"},
        programs=[(PROGRAM_LINK, str(linked.link), str(other))],
    ) as drive:
        steps = at_steps(tmp_path, act, is_undone, every=every)
    assert {"before restart", "restarted"} <= set(steps)


@SOME_OR_EVERY
def test_a_cluster_whose_switch_is_killed_at_any_step_is_reverted(
    debian15: DebianCluster, other: Path, tmp_path: Path, *, every: bool
) -> None:
    before = described(pg_ctl_conf(debian15))
    restart = ["pg_ctlcluster", VERSION, debian15.name, "restart"]

    def open_connection() -> Connection:
        return connect_to_change(debian15.dsn)

    access = ServerAccess(
        open_connection, tmp_path, inspect_server, restarter=command_restarter(restart, open_connection)
    )

    def is_undone(journal: Path) -> bool:
        is_closed = is_reverted(replace(access, journal_directory=journal))
        found = (described(pg_ctl_conf(debian15)), running(debian15))
        return is_closed and found == (before, PROGRAMS / "bin/postgres")

    options = f"-p {other}/bin/postgres"
    with driving(
        debian15,
        restart_command=restart,
        settings={},
        programs=[(PG_CTL_OPTIONS, str(pg_ctl_conf(debian15)), options)],
    ) as drive:
        steps = at_steps(
            tmp_path,
            lambda journal, step: drive.steps("apply", journal, kill_after=step),
            is_undone,
            every=every,
        )
    assert {"before restart", "restarted"} <= set(steps)
