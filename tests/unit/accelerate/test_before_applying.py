"""What applying a plan takes is said in words: restart, memory, standbys, owners."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from tests.fix_plan import plan_of, setting
from tests.fix_progress import Remembered
from tests.fix_settings import server_of
from tests.golden.synthetic import experiment, plan

from pgdyno.accelerate.attached_server import Permissions, before_applying, conclude, for_manager, manager_of
from pgdyno.accelerate.request import Acceleration
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import ConnectionFailedError
from pgdyno.base.facts import Fact, unknown
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState
from pgdyno.model.plans.plan import Effect
from pgdyno.plan.attached import Attached
from pgdyno.plan.subject import Subject
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.server import ConfigurationManager, Server, Standby

PATRONI = ConfigurationManager("Patroni", 'a client calls itself "Patroni"', "patronictl edit-config")
RELOAD = plan_of(setting("work_mem", "4MB", "16MB"))
RESTART = plan_of(setting("shared_buffers", "4GB", "8GB", Effect.RESTART))


def with_standbys(*names: str) -> Server:
    standbys = tuple(Standby(name, "streaming", "async") for name in names)
    return replace(server_of(), standbys=Fact(standbys, "pg_stat_replication"))


def test_a_restart_says_how_long_the_server_is_away() -> None:
    # 4 GiB at 200 MB/s are 21.5 s, and 5 s to stop and start.
    server = server_of(changes={"shared_buffers": "4GB"})
    assert before_applying(RESTART, server)[0] == (
        "Applying the plan takes one restart: about 5 s of downtime, up to 26 s if all of its "
        "shared_buffers (4\xa0GB) must be written first. Both are estimates."
    )
    assert before_applying(RELOAD, server)[0] == "Applying the plan takes a reload, no restart."


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (server_of(), "It has no standbys."),
        (
            with_standbys("a"),
            (
                "It has 1 standby, which the plan does not change: with the same settings, it needs as much "
                "memory."
            ),
        ),
        (
            with_standbys("a", "b"),
            (
                "It has 2 standbys, which the plan does not change: with the same settings, each needs as "
                "much memory."
            ),
        ),
        (
            replace(server_of(), standbys=unknown("hidden from this role", "pg_stat_replication")),
            "It is unknown whether it has standbys: hidden from this role.",
        ),
    ],
)
def test_memory_is_said_for_the_server_and_its_standbys(server: Server, said: str) -> None:
    # 2 GB + 85 + 3800 + 256 + 256 + 192 + 432 MB of 10 GB
    assert (
        before_applying(plan(), server)[1] == f"Memory: at worst 6.9\xa0GB of 10\xa0GB on this server. {said}"
    )
    assert before_applying(RELOAD, server)[1].startswith(
        "Memory: the limit is unknown, so the plan is not proven to fit"
    )


def test_the_owner_of_a_setting_is_named_with_the_place() -> None:
    found = before_applying(RELOAD, server_of(changes={"work_mem": "8MB"}))
    assert len(found) == 3
    assert found[2].startswith("work_mem is set in ")
    assert len(before_applying(RELOAD, server_of())) == 2


def test_who_manages_the_configuration_is_named_instead() -> None:
    server = replace(server_of(changes={"work_mem": "8MB"}), managers=(PATRONI,))
    (said,) = before_applying(RELOAD, server)[2:]
    assert said == (
        'Patroni manages this configuration (a client calls itself "Patroni"): nothing is applied, and the '
        "plan is printed in its format (patronictl edit-config)."
    )


def test_a_plan_without_changes_takes_nothing() -> None:
    assert before_applying(plan_of(), server_of()) == ()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Patroni", "postgresql:"),
        ("CloudNativePG", "clusters.postgresql.cnpg.io"),
        ("Neon", "work_mem = '16MB'"),
    ],
)
def test_the_plan_is_written_as_its_manager_takes_it(name: str, line: str) -> None:
    written = for_manager(ConfigurationManager(name, "", ""), RELOAD, server_of())
    assert line in written
    assert "16MB" in written


def attached(server: Server) -> Attached:
    nobody: Any = None
    without_programs: Any = SimpleNamespace(bin_directory=None)
    return Attached("", "", "", Subject(nobody, server, nobody), without_programs, nobody, ())


PAYING = Acceleration(RELOAD, PlanDecision(PlanState.PAYS, "", ()), experiment())
"""A plan that pays, as if it had been measured."""


def not_here() -> NoReturn:
    raise ConnectionFailedError("no server is here")


def test_a_managed_server_gets_the_plan_in_writing_and_no_change(tmp_path: Path) -> None:
    server = replace(server_of(), managers=(PATRONI,))
    access, allowed = ServerAccess(not_here, tmp_path, inspect_server), Permissions(any_workload=True)
    found = conclude(attached(server), PAYING, access, Remembered(), allowed, pytest.fail)
    assert found.applied is None
    assert found.not_applied == (
        "Patroni manages the configuration of this server; the plan is below, in its format"
    )
    assert "work_mem" in found.handed_over
    assert manager_of(server) is PATRONI


def test_what_applying_takes_is_said_right_before_the_change(tmp_path: Path) -> None:
    said: list[str] = []
    access, allowed = ServerAccess(not_here, tmp_path, inspect_server), Permissions(any_workload=True)
    with pytest.raises(ConnectionFailedError):
        conclude(attached(server_of()), PAYING, access, Remembered(), allowed, said.append)
    assert said == list(before_applying(RELOAD, server_of()))
