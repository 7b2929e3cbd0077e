"""Findings about hosts, each with the next step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.probes import WakeUp
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.model.cells.check import (
    CellHostFacts,
    CheckedHost,
    ClockOffset,
    FoundPgdyno,
    FoundPrograms,
    HostFinding,
    NetworkProbe,
    ReachedHost,
    TrialWrite,
    Trouble,
)
from pgdyno.remote.cells.findings import judged

FACTS = CellHostFacts(
    host_name="db1",
    user="ada",
    sudo="",
    address="10.0.0.1",
    boot_id="a",
    kernel="6.1.0",
    machine="x86_64",
    cpu_model="",
    cpus=(0, 1, 2, 3),
    memory_bytes=8 << 30,
    python="3.11.2",
    is_synchronised=True,
    postgresql=(FoundPrograms("/usr/lib/postgresql/17/bin", "postgres (PostgreSQL) 17.2"),),
    pgdyno=FoundPgdyno("/usr/bin/pgdyno", "1.2"),
)
KEEP_THE_TIME = "sudo systemctl enable --now chrony (Red Hat: chronyd), then wait for: chronyc waitsync"
CLOCK = ClockOffset(0.001, 0.0005, 0.001, 30)
ROOM = TrialWrite("/tmp", 1 << 30, "", may_run_programs=True)
WAKE_UP = WakeUp(Fact(50.0, "median"), Fact(5.0, "median"))
ANSWER = ReachedHost(FACTS, CLOCK, ROOM, WAKE_UP)
SERVER = CheckedHost(CellHost("db1", HostRole.SERVER, "db1"), ANSWER)
LOAD = CheckedHost(
    CellHost("client1", HostRole.LOAD, "client1"),
    replace(ANSWER, facts=replace(FACTS, boot_id="b", postgresql=(), pgdyno=None)),
    NetworkProbe(0.0001, 1e9, 1e9, "10.0.0.2"),
)


def with_facts(checked: CheckedHost, **changes: object) -> CheckedHost:
    assert isinstance(checked.answer, ReachedHost)
    facts = replace(checked.answer.facts, **changes)  # type: ignore[arg-type]
    return replace(checked, answer=replace(checked.answer, facts=facts))


def with_answer(checked: CheckedHost, **changes: object) -> CheckedHost:
    assert isinstance(checked.answer, ReachedHost)
    return replace(checked, answer=replace(checked.answer, **changes))  # type: ignore[arg-type]


def only(*hosts: CheckedHost) -> HostFinding:
    """Return the only finding."""
    (found,) = judged(hosts, "x86_64", "1.2").findings
    return found


def test_nothing_is_said_of_a_cell_that_is_well() -> None:
    found = judged([SERVER, LOAD], "x86_64", "1.2")
    assert (found.findings, found.is_usable) == ((), True)


def test_a_host_that_is_not_reached_is_an_obstacle() -> None:
    lost = replace(LOAD, answer=Trouble("it does not answer", "see to it"), network=None)
    found = judged([SERVER, lost], "x86_64", "1.2")
    assert found.findings == (
        HostFinding(("client1",), is_obstacle=True, said="it does not answer", next_step="see to it"),
    )
    assert not found.is_usable


def test_load_that_begins_at_another_time_is_an_obstacle() -> None:
    ahead = with_answer(LOAD, clock=ClockOffset(0.061, 0.002, 0.004, 30))
    found = only(SERVER, ahead)
    assert found.is_obstacle
    assert found.said == (
        "its clock is 60\N{NO-BREAK SPACE}ms (±\N{NO-BREAK SPACE}2.5\N{NO-BREAK SPACE}ms) ahead of db1's; "
        "the limit is 50\N{NO-BREAK SPACE}ms"
    )
    assert found.next_step == f"on client1 and db1: {KEEP_THE_TIME}"


def test_an_offset_that_may_be_an_error_is_a_warning() -> None:
    far = with_answer(LOAD, clock=ClockOffset(0.150, 0.100, 0.200, 30))
    found = only(SERVER, far)
    assert not found.is_obstacle
    assert found.said == (
        "its clock is 149\N{NO-BREAK SPACE}ms (±\N{NO-BREAK SPACE}100\N{NO-BREAK SPACE}ms) ahead of db1's; "
        "the round trip is too long to tell whether the limit of 50\N{NO-BREAK SPACE}ms is kept"
    )
    assert found.next_step == "run pgdyno closer to both hosts; or on client1 and db1: chronyc tracking"


def test_an_offset_within_the_limit_for_sure_is_none() -> None:
    near = with_answer(LOAD, clock=ClockOffset(0.030, 0.015, 0.030, 30))
    assert judged([SERVER, near], "x86_64", "1.2").findings == ()


def test_a_server_that_is_lost_is_no_fault_of_a_load_host() -> None:
    lost = replace(SERVER, answer=Trouble("the connection was lost", "see to it"))
    unmeasured = replace(LOAD, network=Unknown("db1 cannot be used"))
    assert only(lost, unmeasured).hosts == ("db1",)


def test_hosts_that_agree_and_differ_from_this_machine_are_a_warning() -> None:
    clock = ClockOffset(-2.0, 0.001, 0.002, 30)
    found = only(with_answer(SERVER, clock=clock), with_answer(LOAD, clock=clock))
    assert not found.is_obstacle
    assert found.said == (
        "its clock is 2\N{NO-BREAK SPACE}s (±\N{NO-BREAK SPACE}1\N{NO-BREAK SPACE}ms) behind this machine's"
    )


def test_the_same_warning_names_all_its_hosts() -> None:
    drifting = [with_facts(one, is_synchronised=False) for one in (SERVER, LOAD)]
    assert only(*drifting) == HostFinding(
        ("db1", "client1"),
        is_obstacle=False,
        said="its clock drifts: no service synchronises it",
        next_step=f"on the host: {KEEP_THE_TIME}",
    )


def test_a_clock_that_nobody_can_tell_of_is_not_found_fault_with() -> None:
    unknown = with_facts(LOAD, is_synchronised=Unknown("the kernel does not tell"))
    assert judged([SERVER, unknown], "x86_64", "1.2").findings == ()


def test_a_full_disk_and_one_without_programs() -> None:
    full = replace(ROOM, free_bytes=2 << 20, trouble="No space left on device")
    assert only(SERVER, with_answer(LOAD, trial_write=full)).said == (
        "could not write a program to /tmp: no space left on device (2\N{NO-BREAK SPACE}MB free)"
    )
    noexec = replace(ROOM, may_run_programs=False)
    assert only(SERVER, with_answer(LOAD, trial_write=noexec)).said == (
        "/tmp is mounted noexec: programs cannot run there"
    )


def test_cpus_that_are_not_there() -> None:
    host = replace(LOAD.host, cpus=tuple(range(2, 20)))
    assert only(SERVER, replace(LOAD, host=host)).said == (
        "hosts.toml names CPUs that are not available there: 4, 5, 6, 7, 8, 9, 10, 11, …"
    )


def test_a_server_without_postgresql() -> None:
    assert only(with_facts(SERVER, postgresql=()), LOAD).said == "no PostgreSQL found there"
    named = replace(SERVER, host=replace(SERVER.host, postgresql="/opt/pg/bin"))
    found = only(with_facts(named, postgresql=()), LOAD)
    assert found.said == "no PostgreSQL in /opt/pg/bin"
    assert found.next_step == "install it, or name the directory of postgres: postgresql = … in [hosts.db1]"


def test_a_postgresql_that_is_broken_is_told_unless_another_one_works() -> None:
    broken = FoundPrograms("/opt/pg/bin", "", "cannot be run: Exec format error")
    found = only(with_facts(SERVER, postgresql=(broken,)), LOAD)
    assert found.is_obstacle
    assert found.said == "/opt/pg/bin/postgres cannot be run: Exec format error"
    both = with_facts(SERVER, postgresql=(*FACTS.postgresql, broken))
    assert judged([both, LOAD], "x86_64", "1.2").findings == ()


NAMED = 'pgdyno = "/…/pgdyno" in [hosts.db1]'


@pytest.mark.parametrize(
    ("found", "said", "step"),
    [
        (
            None,
            "commands with --cell cannot run there: pgdyno is not on the login's PATH",
            "give its path",
        ),
        (
            FoundPgdyno("/usr/bin/pgdyno", "1.1"),
            "commands with --cell cannot run there: its pgdyno is 1.1, but this is 1.2",
            "name another installation",
        ),
        (
            FoundPgdyno("/opt/pgdyno", "", "cannot be run: Permission denied"),
            "its pgdyno, /opt/pgdyno, cannot be run: Permission denied",
            "name another installation",
        ),
    ],
)
def test_a_server_to_which_no_command_can_be_carried(found: FoundPgdyno | None, said: str, step: str) -> None:
    warned = only(with_facts(SERVER, pgdyno=found), LOAD)
    assert (warned.is_obstacle, warned.said) == (False, said)
    assert warned.next_step == f"install pgdyno 1.2 there, or {step}: {NAMED}"


def test_on_the_servers_own_host_nothing_has_to_be_carried() -> None:
    assert judged([with_facts(SERVER, pgdyno=None), LOAD], "x86_64", None).findings == ()


def test_a_user_without_rights_is_a_warning_on_the_server_alone() -> None:
    found = only(with_facts(SERVER, sudo="sudo: a password is required"), LOAD)
    assert not found.is_obstacle
    assert found.said == ("ada has no root privileges there without a password: sudo: a password is required")
    assert judged([SERVER, with_facts(LOAD, sudo="sudo is not installed")], "x86_64", "1.2").findings == ()


def test_a_load_host_of_another_kind() -> None:
    found = only(SERVER, with_facts(LOAD, machine="aarch64"))
    assert found.is_obstacle
    assert found.said == "its machine type is aarch64, but pgdyno's driver here is for x86_64"


def test_hosts_on_one_machine_are_a_warning() -> None:
    found = only(SERVER, with_facts(LOAD, boot_id="a"))
    assert not found.is_obstacle
    assert found.said == "it is the same machine as db1: they compete for CPUs and memory"


def test_a_network_that_was_not_measured_is_an_obstacle() -> None:
    found = only(SERVER, replace(LOAD, network=Unknown("no connection to 10.0.0.1 port 5433: timed out")))
    assert found.is_obstacle
    assert found.said == (
        "the network to the server was not measured: no connection to 10.0.0.1 port 5433: timed out"
    )


def test_obstacles_come_first() -> None:
    found = judged(
        [with_facts(SERVER, is_synchronised=False), with_facts(LOAD, machine="riscv64")], "x86_64", "1.2"
    )
    assert [one.is_obstacle for one in found.findings] == [True, False]
