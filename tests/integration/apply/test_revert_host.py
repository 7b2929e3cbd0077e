"""apply, status and revert of a real server together with the machine that it runs on."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_machine import (
    BACKGROUND_RATIO,
    DIRTY,
    DIRTY_RATIO,
    POOL,
    SURPLUS,
    SWAPPINESS,
    Machine,
    chosen,
    nothing_beside,
)
from tests.fix_servers import RealServer
from tests.integration.host_driver import asking
from tests.integration.journal_support import (
    access_to,
    auto_conf,
    pg_ctl_restart,
    plan_of,
    snapshot,
    with_files,
)

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan, preview_apply
from pgdyno.apply.journal_text import apply_text, revert_text, status_text
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, preview_revert, revert
from pgdyno.apply.revert_host import preview_revert_host, revert_host
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.status import journal_status, server_status
from pgdyno.base.errors import (
    ConnectionFailedError,
    PermissionNotGivenError,
    PgdynoError,
    PrivilegeError,
    RefusedError,
    ServerStartError,
    SettingError,
    StillChangedError,
    UsageError,
)
from pgdyno.model.plans.journal import Drift, OnDrift, ReceiptState
from pgdyno.model.plans.plan import Effect, Plan

pytestmark = [pytest.mark.server, pytest.mark.root]

ALL = RevertRequest(is_all=True, allow_restart=True)
MOST_THEFTS = 5
SERVERS_BESIDE = 8  # of other tests, which take huge pages where there are any
FILES = {SWAPPINESS: "7", DIRTY: "536870912"}
BOTH = with_files(plan_of(work_mem="8MB"), FILES)


@pytest.fixture(autouse=True)
def before(machine: Machine, server: RealServer, access: ServerAccess) -> Iterator[dict[str, str]]:
    """The machine as kernels come; after a revert it and the server are so again, whatever a test does."""
    found = machine.snapshot()
    for path, value in ((SWAPPINESS, "60"), (DIRTY_RATIO, "20"), (BACKGROUND_RATIO, "10")):
        machine.set(path, value)
    of_machine, of_server = machine.snapshot(), snapshot(server)
    yield of_machine
    revert(access, replace(ALL, on_drift=OnDrift.OVERWRITE))
    left = machine.snapshot()
    machine.put_back(found)
    assert left == of_machine
    assert snapshot(server) - of_server == []


def shown(*paths: str) -> list[str]:
    return [chosen(Path(path).read_text()) for path in paths]


def refused(access: ServerAccess, plan: Plan, error: type[PgdynoError]) -> str:
    """Apply, expect an error, and see that no receipt was written."""
    with pytest.raises(error) as caught:
        apply_plan(access, ApplyRequest(plan))
    assert read_journal(access.journal_directory).receipts == ()
    return str(caught.value)


def undone(access: ServerAccess, plan: Plan, error: type[PgdynoError], *, allow_restart: bool = False) -> str:
    """Apply, expect an error, and see that every receipt is closed."""
    with pytest.raises(error) as caught:
        apply_plan(access, ApplyRequest(plan, allow_restart=allow_restart))
    contents = read_journal(access.journal_directory)
    assert {one.state for one in contents.receipts} == {ReceiptState.REVERTED}
    return str(caught.value)


def test_the_machine_is_changed_first_and_everything_is_in_force(
    server: RealServer, access: ServerAccess
) -> None:
    steps: list[str] = []
    result = apply_plan(access, ApplyRequest(BOTH, steps=steps.append))
    assert shown(SWAPPINESS, DIRTY, DIRTY_RATIO) == ["7", "536870912", "0"]
    assert server.execute("SHOW work_mem") == [("8MB",)]
    assert [(one.key, one.before, one.effective, one.state) for one in result.outcomes] == [
        (SWAPPINESS, "60", "7", ReceiptState.VERIFIED),
        (DIRTY, "0", "536870912", ReceiptState.VERIFIED),
        ("work_mem", "4MB", "8MB", ReceiptState.VERIFIED),
    ]
    assert steps.index(f"verified {DIRTY}") < steps.index("changed work_mem")
    assert "    vm.swappiness   60 → 7\n" in apply_text(result)


def test_every_change_has_a_receipt_of_its_own(server: RealServer, access: ServerAccess) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    receipts = read_journal(access.journal_directory).open
    assert [one.key for one in receipts] == [SWAPPINESS, DIRTY, "work_mem"]
    assert len({one.id for one in receipts}) == 3
    assert [one.target.kind for one in receipts] == ["host", "host", "server"]
    assert {one.server and one.server.data_directory for one in receipts[:2]} == {str(server.data_directory)}


def test_revert_gives_back_both(
    machine: Machine, server: RealServer, access: ServerAccess, before: dict[str, str]
) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    result = revert(access, RevertRequest())
    assert result.is_complete
    assert [one.key for one in result.outcomes] == ["work_mem", DIRTY, SWAPPINESS]
    assert "    vm.swappiness   7 → 60\n" in revert_text(result)
    assert machine.snapshot() == before
    assert server.execute("SHOW work_mem") == [("4MB",)]


def test_previews_say_what_a_root_shell_would_do(
    machine: Machine, access: ServerAccess, before: dict[str, str]
) -> None:
    assert preview_apply(access, ApplyRequest(BOTH)).statements == (
        "ALTER SYSTEM SET work_mem = '8MB';",
        "echo 7 > /proc/sys/vm/swappiness",
        "echo 536870912 > /proc/sys/vm/dirty_bytes",
    )
    assert machine.snapshot() == before
    apply_plan(access, ApplyRequest(BOTH))
    back = ("echo 20 > /proc/sys/vm/dirty_ratio", "echo 60 > /proc/sys/vm/swappiness")
    assert preview_revert(access, RevertRequest()).statements == ("ALTER SYSTEM RESET work_mem;", *back)
    assert preview_revert_host(access, RevertRequest()).statements == back
    assert shown(SWAPPINESS, DIRTY) == ["7", "536870912"]


def test_all_goes_back_before_the_first_of_two_changes_of_one_file(
    machine: Machine, access: ServerAccess, before: dict[str, str]
) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    apply_plan(access, ApplyRequest(with_files(plan_of(), {SWAPPINESS: "5"})))
    assert revert(access, RevertRequest()).is_complete
    assert shown(SWAPPINESS, DIRTY) == ["7", "536870912"]
    apply_plan(access, ApplyRequest(with_files(plan_of(), {SWAPPINESS: "5"})))
    assert [one.wanted for one in revert(access, ALL).outcomes] == ["8MB", "5", "536870912", "7"]
    assert machine.snapshot() == before


def test_a_value_that_the_kernel_refuses_undoes_everything(
    machine: Machine, server: RealServer, access: ServerAccess, before: dict[str, str]
) -> None:
    plan = with_files(plan_of(work_mem="8MB"), {DIRTY: "536870912", SWAPPINESS: "9999"})
    assert undone(access, plan, SettingError) == (
        'the kernel rejects "9999" for vm.swappiness\nDETAIL:  Invalid argument'
    )
    assert machine.snapshot() == before
    assert server.execute("SHOW work_mem") == [("4MB",)]


def test_a_setting_that_fails_undoes_the_machine_as_well(
    machine: Machine, access: ServerAccess, before: dict[str, str]
) -> None:
    plan = with_files(plan_of(shared_preload_libraries="no_such_library"), FILES)
    said = undone(access, plan, ServerStartError, allow_restart=True)
    assert said.startswith(
        "the server did not start with the new settings; it runs with the original settings again\n"
    )
    assert machine.snapshot() == before


def test_a_pool_that_comes_out_smaller_undoes_everything(
    machine: Machine, access: ServerAccess, before: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine whose memory is scattered: the kernel reserves what it finds."""
    now = int(before[POOL])
    write = os.write
    partly = {f"{now + 100}\n".encode(): f"{now + 6}\n".encode()}

    def find_some(file: int, content: bytes) -> int:
        return write(file, partly.get(content, content))

    with monkeypatch.context() as scattered:
        scattered.setattr("os.write", find_some)
        plan = with_files(plan_of(work_mem="8MB"), {SWAPPINESS: "7", POOL: str(now + 100)})
        said = undone(access, plan, SettingError)
    assert said == (
        f"only {now + 6} of {now + 100} huge pages could be reserved\n"
        "DETAIL:  free memory is fragmented or insufficient\n"
        "HINT:  reserve them right after boot, or plan smaller shared_buffers"
    )
    assert machine.snapshot() == before


def test_what_the_kernel_made_of_a_value_is_taken_back(
    machine: Machine, access: ServerAccess, before: dict[str, str]
) -> None:
    """Read-ahead is counted in pages: of 65 kB 64 are left."""
    need_queue(machine)
    said = undone(access, with_files(plan_of(), {machine.read_ahead: "65"}), PgdynoError)
    assert said == (
        f"1 changes did not take effect\nDETAIL:  {machine.read_ahead}: requested 65, in force 64"
    )
    assert machine.snapshot() == before


def need_queue(machine: Machine) -> None:
    if machine.queue is None:
        pytest.skip("no loop device is unused here")


def test_what_a_scheduler_sets_anew_comes_back_with_it(machine: Machine, access: ServerAccess) -> None:
    need_queue(machine)
    found = machine.snapshot()
    machine.set(machine.scheduler, "mq-deadline")
    tuned = {machine.depth: "64", f"{machine.queue}/iosched/fifo_batch": "3"}
    for path, value in tuned.items():
        machine.set(path, value)
    mine = machine.snapshot()
    try:
        apply_plan(access, ApplyRequest(with_files(plan_of(), {machine.scheduler: "none"})))
        assert shown(machine.scheduler) == ["none"]
        assert shown(machine.depth) != ["64"]
        assert revert(access, ALL).is_complete
        assert machine.snapshot() == mine
    finally:
        machine.put_back(found)


def test_a_file_that_is_read_only_is_refused_before_anything_is_changed(access: ServerAccess) -> None:
    assert refused(access, with_files(plan_of(work_mem="8MB"), {SURPLUS: "1"}), PrivilegeError) == (
        f"cannot change {SURPLUS}\n"
        f"DETAIL:  {SURPLUS}: Permission denied\n"
        "HINT:  run pgdyno as root, on the machine itself rather than in a container"
    )


def test_a_file_that_this_kernel_does_not_have_is_refused_before_anything_is_changed(
    access: ServerAccess,
) -> None:
    plan = with_files(plan_of(work_mem="8MB"), {"/proc/sys/vm/no_such_file": "1"})
    assert refused(access, plan, SettingError) == (
        'this kernel has no "vm.no_such_file"\nDETAIL:  /proc/sys/vm/no_such_file does not exist'
    )


def test_a_machine_that_is_out_of_reach_is_refused(access: ServerAccess) -> None:
    assert refused(replace(access, host_writers={}), BOTH, UsageError) == (
        f'pgdyno cannot apply changes of kind "kernel"\nDETAIL:  key {SWAPPINESS}'
    )


def test_what_could_not_be_changed_back_is_not_changed(machine: Machine, access: ServerAccess) -> None:
    """The kernel leaves dirty_bytes as it is when dirty_ratio is set to the 0 that it shows already."""
    machine.set(DIRTY_RATIO, "0")
    try:
        said = undone(access, BOTH, SettingError)
        assert shown(SWAPPINESS, DIRTY, DIRTY_RATIO) == ["60", "0", "0"]
    finally:
        machine.set(DIRTY_RATIO, "20")
    assert said == (
        "vm.dirty_bytes is not changed, because it could not be restored\n"
        "DETAIL:  vm.dirty_bytes and vm.dirty_ratio are both 0: writing one may not change the other\n"
        "HINT:  omit it"
    )


def test_an_interrupted_apply_is_reverted_before_the_next_one(access: ServerAccess) -> None:
    class PowerFailure(BaseException):
        """Stands for the end of the process: nothing catches it."""

    def fail(step: str) -> None:
        if step == f"changed {SWAPPINESS}":
            raise PowerFailure

    with pytest.raises(PowerFailure):
        apply_plan(access, ApplyRequest(BOTH, steps=fail))
    with pytest.raises(RefusedError, match="was interrupted on this machine") as caught:
        apply_plan(access, ApplyRequest(plan_of(jit="off")))
    assert caught.value.detail == "vm.swappiness may or may not be changed"
    assert caught.value.hint == "pgdyno revert, then try again"


def test_ctrl_c_undoes_what_was_done_so_far(
    machine: Machine, access: ServerAccess, before: dict[str, str]
) -> None:
    def interrupt(step: str) -> None:
        if step == f"changed {DIRTY}":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_plan(access, ApplyRequest(BOTH, steps=interrupt))
    assert machine.snapshot() == before
    assert read_journal(access.journal_directory).open == ()


def test_ctrl_c_while_undoing_says_what_is_still_changed(access: ServerAccess) -> None:
    apply_plan(access, ApplyRequest(with_files(plan_of(), FILES)))

    def interrupt(step: str) -> None:
        if step == f"restored {DIRTY}":
            raise KeyboardInterrupt

    with pytest.raises(StillChangedError) as caught:
        revert_host(access, RevertRequest(steps=interrupt))
    assert caught.value.message == "interrupted; something is still changed"
    assert caught.value.hint == (
        "pgdyno revert --host-only; by hand, as root: "
        "echo 20 > /proc/sys/vm/dirty_ratio; echo 60 > /proc/sys/vm/swappiness"
    )


def test_what_somebody_else_has_changed_is_left_alone(access: ServerAccess, machine: Machine) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    machine.set(SWAPPINESS, "30")
    result = revert(access, ALL)
    assert result.drifted == (Drift(SWAPPINESS, "60", "7", "30"),)
    assert not result.is_complete
    assert shown(SWAPPINESS, DIRTY, DIRTY_RATIO) == ["30", "0", "20"]
    left_alone = "Left alone: vm.swappiness: someone else set it to 30 after pgdyno changed it to 7"
    assert left_alone in revert_text(result)
    assert preview_revert(access, ALL).drifted == result.drifted
    assert revert_host(access, replace(ALL, on_drift=OnDrift.OVERWRITE)).is_complete
    assert shown(SWAPPINESS) == ["60"]


def test_what_somebody_else_has_changed_is_theirs_if_the_user_says_so(
    access: ServerAccess, machine: Machine
) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    machine.set(SWAPPINESS, "30")
    assert revert(access, replace(ALL, on_drift=OnDrift.KEEP)).is_complete
    assert shown(SWAPPINESS) == ["30"]
    assert read_journal(access.journal_directory).open == ()
    machine.set(SWAPPINESS, "60")


def test_without_its_server_the_machine_is_restored_alone(
    machine: Machine, server: RealServer, access: ServerAccess, before: dict[str, str]
) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    result = revert_host(access, RevertRequest())
    assert [(one.key, one.state) for one in result.outcomes] == [
        (DIRTY, ReceiptState.REVERTED),
        (SWAPPINESS, ReceiptState.REVERTED),
    ]
    assert machine.snapshot() == before
    assert revert_text(result).endswith("note: 1 changes on servers stay applied: pgdyno status\n")
    assert access.restarter is not None
    access.restarter.restart()
    assert server.execute("SHOW work_mem") == [("8MB",)]
    assert [one.key for one in revert(access, ALL).outcomes] == ["work_mem"]


def test_a_server_that_is_down_is_restored_with_its_machine(
    machine: Machine, server: RealServer, access: ServerAccess, before: dict[str, str]
) -> None:
    conf = auto_conf(server).read_bytes()
    apply_plan(access, ApplyRequest(BOTH))
    server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    result = revert(access, RevertRequest())
    assert (machine.snapshot(), auto_conf(server).read_bytes()) == (before, conf)
    assert result.pending_restart == ("work_mem",)
    assert revert(access, ALL).is_complete


def test_a_server_that_is_down_and_was_not_changed_leads_to_the_machine(
    server: RealServer, access: ServerAccess
) -> None:
    apply_plan(access, ApplyRequest(with_files(plan_of(), FILES)))
    server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    try:
        with pytest.raises(ConnectionFailedError) as caught:
            revert(access, RevertRequest())
    finally:
        assert access.restarter is not None
        access.restarter.restart()
    assert caught.value.hint == "pgdyno revert --host-only undoes the changes of this machine"


def test_one_file_that_cannot_be_restored_does_not_keep_anything_else_changed(
    server: RealServer, access: ServerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    write = os.write

    def refuse(file: int, content: bytes) -> int:
        if content == b"20\n":  # the ratio that stands for dirty_bytes
            raise OSError(22, "Invalid argument")
        return write(file, content)

    with monkeypatch.context() as stubborn:
        stubborn.setattr("os.write", refuse)
        with pytest.raises(StillChangedError) as caught:
            revert(access, ALL)
    assert str(caught.value) == (
        'the kernel rejects "20" for vm.dirty_ratio; something is still changed\n'
        "DETAIL:  Invalid argument\n"
        "HINT:  pgdyno revert; by hand, as root: echo 20 > /proc/sys/vm/dirty_ratio"
    )
    assert shown(SWAPPINESS) == ["60"]
    assert server.execute("SHOW work_mem") == [("4MB",)]


def test_status_shows_what_the_kernel_shows(access: ServerAccess, machine: Machine) -> None:
    apply_plan(access, ApplyRequest(BOTH))

    def drifts() -> dict[str, tuple[str | None, str | None]]:
        report = server_status(access, candidates=())
        return {entry.key: (entry.effective, entry.drift) for entry in report.entries}

    assert drifts() == {
        SWAPPINESS: ("7", None), DIRTY: ("536870912", None), "work_mem": ("8MB", None)
    }  # fmt: skip
    text = status_text(journal_status(access, candidates=()))
    assert "    vm.swappiness   7 (was 60)         in force: 7\n" in text
    machine.set(SWAPPINESS, "30")
    machine.set(DIRTY_RATIO, "20")
    assert drifts()[SWAPPINESS] == ("30", "it was set to 30")
    assert drifts()[DIRTY] == ("0", "it has its original value")
    text = status_text(journal_status(access, candidates=()))
    assert "    changed since: vm.swappiness: it was set to 30\n" in text


def test_after_a_restart_of_the_machine_its_changes_are_gone(
    access: ServerAccess, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_plan(access, ApplyRequest(BOTH))
    (tmp_path / "boot_id").write_text("0c0ffee0-0000-4000-8000-000000000000\n")
    monkeypatch.setattr("pgdyno.apply.writers.kernel_file.BOOT_ID", str(tmp_path / "boot_id"))
    machine.set(SWAPPINESS, "30")  # as this machine is configured to start
    entries = {one.key: one for one in journal_status(access, candidates=()).entries}
    assert entries[SWAPPINESS].drift == "the machine was restarted, which discarded it"
    result = revert(access, ALL)
    assert result.is_complete
    assert shown(SWAPPINESS) == ["30"]
    gone = r"    vm\.swappiness   7 → 30 +discarded by a restart of the machine\n"
    assert re.search(gone, revert_text(result))
    machine.set(SWAPPINESS, "60")
    machine.set(DIRTY_RATIO, "20")


@pytest.mark.parametrize("plan", [BOTH, with_files(plan_of(), FILES)], ids=["both", "machine only"])
def test_reverting_another_server_leaves_this_ones_machine_alone(
    access: ServerAccess, pg18: RealServer, plan: Plan
) -> None:
    apply_plan(access, ApplyRequest(plan))
    other = access_to(pg18, access.journal_directory)
    assert revert(other, ALL).outcomes == ()
    assert preview_revert(other, ALL).outcomes == ()
    assert shown(SWAPPINESS, DIRTY) == ["7", "536870912"]
    assert revert(access, ALL).is_complete
    assert shown(SWAPPINESS, DIRTY) == ["60", "0"]


def test_of_two_servers_that_changed_one_file_the_later_one_goes_back_first(
    access: ServerAccess, pg18: RealServer
) -> None:
    other = access_to(pg18, access.journal_directory)
    apply_plan(access, ApplyRequest(with_files(plan_of(), {SWAPPINESS: "7"})))
    applied = apply_plan(other, ApplyRequest(with_files(plan_of(), {SWAPPINESS: "5"})))
    result = revert(access, ALL)
    assert result.drifted == (Drift(SWAPPINESS, "60", "7", "5", later=applied.target),)
    assert (
        f"Left alone: vm.swappiness: the plan for the server at {applied.target} has changed it since\n"
        "    revert that plan first, then this one\n"
    ) in revert_text(result)
    assert revert(other, ALL).is_complete
    assert shown(SWAPPINESS) == ["7"]
    assert revert(access, ALL).is_complete


def page_sizes(pid: int) -> set[str]:
    """Return the sizes of the pages that a process has mapped, as the kernel tells them."""
    told = Path(f"/proc/{pid}/smaps").read_text()
    return set(re.findall(r"^KernelPageSize: +(\d+ kB)$", told, re.MULTILINE))


def take_huge_pages(server: RealServer, access: ServerAccess) -> None:
    """Apply a plan for huge pages that are enough for the server and for those of other tests."""
    if shown(POOL) != ["0"]:
        pytest.skip("this machine has huge pages of its own")
    pages = int(server.execute("SHOW shared_memory_size_in_huge_pages")[0][0]) * (1 + SERVERS_BESIDE)
    plan = with_files(plan_of(huge_pages="on"), {POOL: str(pages)})
    for _ in range(MOST_THEFTS):
        try:
            apply_plan(access, ApplyRequest(plan, allow_restart=True))
        except ServerStartError as error:  # servers of other tests have taken all of them
            last = error
            continue
        return
    pytest.fail(f"the server got no huge pages: {last}")


def test_huge_pages_are_in_use_after_apply_and_given_back_by_revert(
    server: RealServer, access: ServerAccess, machine: Machine, before: dict[str, str]
) -> None:
    take_huge_pages(server, access)
    assert server.execute("SHOW huge_pages_status") == [("on",)]
    assert "2048 kB" in page_sizes(server.pid)
    assert revert(access, ALL).is_complete
    assert server.execute("SHOW huge_pages_status") == [("off",)]
    assert "2048 kB" not in page_sizes(server.pid)
    assert machine.snapshot() == before


def test_huge_pages_in_use_are_given_back_when_the_server_ends(
    server: RealServer, access: ServerAccess, machine: Machine, before: dict[str, str]
) -> None:
    take_huge_pages(server, access)
    result = revert(access, RevertRequest())
    assert result.pending_restart == ("huge_pages",)
    (pool,) = (one for one in result.outcomes if one.key == POOL)
    assert (pool.effective, pool.state) == ("0", ReceiptState.REVERTED)
    assert int(Path(SURPLUS).read_text()) > 0
    assert revert(access, ALL).is_complete
    assert machine.snapshot() == before


@pytest.mark.parametrize("points", [8, pytest.param(20, marks=pytest.mark.long)])
def test_an_apply_or_a_revert_of_both_killed_before_any_operation_is_undone(
    server: RealServer, machine: Machine, before: dict[str, str], tmp_path: Path, points: int
) -> None:
    dice = random.Random(5)  # noqa: S311 — reproducible
    said: list[str] = []
    of_server = snapshot(server)
    task = {"dsn": server.dsn, "settings": {"work_mem": "8MB"}, "values": FILES}
    with asking() as ask:
        most = {
            action: len(ask(action, tmp_path / "whole", **task)["operations"])
            for action in ("apply", "revert")
        }
        for point in range(points):
            journal = tmp_path / f"journal-{point}"
            action = dice.choice(["apply", "revert"])
            if action == "revert":
                assert ask("apply", journal, **task)["said"] == "done"
            number = dice.randint(1, most[action])
            said.append(ask(action, journal, kill_before=number, is_torn=True, **task)["said"])
            assert revert(access_to(server, journal), ALL).is_complete, said
            assert machine.snapshot() == before, said
            assert snapshot(server) - of_server == [], said
    # How often a server is asked whether it is ready varies: the last operation may not be reached.
    assert sum(one.startswith("killed before operation") for one in said) > points // 2


def test_the_commands_change_and_restore_the_machine(
    server: RealServer, machine: Machine, before: dict[str, str], home: Path
) -> None:
    named = ("--dsn", server.dsn)
    planned = ("--layers", "application,system", "--unmeasured", "--ram", "1GB", "--connections", "20")
    restart = ("--allow-restart", "--restart-command", shlex.join(pg_ctl_restart(server)))
    measured = [option for option in planned if option != "--unmeasured"]
    done = pgdyno("apply", *named, *measured, "--dry-run")
    assert "not changed, because its effect has not been measured (pgdyno apply --unmeasured" in done.stdout
    assert "echo 10 > /proc/sys/vm/swappiness" not in done.stdout
    done = pgdyno("apply", *named, *planned, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "    echo 10 > /proc/sys/vm/swappiness\n" in done.stdout
    assert machine.snapshot() == before
    done = pgdyno("apply", *named, *planned, *restart)
    assert done.returncode == 0, done.stderr
    assert "vm.swappiness" in done.stdout
    assert shown(SWAPPINESS) == ["10"]
    assert "10 (was 60)" in pgdyno("status").stdout
    done = pgdyno("revert", *named, *restart)
    assert done.returncode == 0, done.stderr
    assert machine.snapshot() == before


def test_the_commands_persist_what_they_change_and_take_it_back(
    server: RealServer, machine: Machine, before: dict[str, str], home: Path
) -> None:
    file = Path("/etc/sysctl.d/60-pgdyno.conf")
    if file.exists() or not (file.parent.is_dir() and Path("/usr/sbin/sysctl").exists()):
        pytest.skip("nothing here sets sysctls at the start, or pgdyno does so already")
    names = sorted(file.parent.iterdir())
    restart = ("--allow-restart", "--restart-command", shlex.join(pg_ctl_restart(server)))
    planned = ("--layers", "application,system", "--unmeasured", "--ram", "1GB", "--connections", "20")
    done = pgdyno("apply", "--dsn", server.dsn, *planned, "--persist", *restart)
    try:
        assert done.returncode == 0, done.stderr
        assert "\nvm.swappiness = 10\n" in file.read_text()
        assert re.search(rf"    {file} +no file → sha256 [0-9a-f]{{12}}\n", done.stdout)
        assert f"    {file} " in pgdyno("status").stdout
    finally:
        done = pgdyno("revert", "--dsn", server.dsn, *restart)
    assert done.returncode == 0, done.stderr
    assert sorted(file.parent.iterdir()) == names
    assert machine.snapshot() == before


@nothing_beside
def test_a_pool_alone_restarts_the_server_which_takes_its_pages_at_its_start(
    machine: Machine, server: RealServer, access: ServerAccess
) -> None:
    found = int(chosen(Path(POOL).read_text()))
    needed = int(server.execute("SHOW shared_memory_size_in_huge_pages")[0][0])
    (line,) = with_files(Plan((), (), (), None), {POOL: str(found + needed)}).lines
    at_start = replace(line, change=replace(line.change, effect=Effect.RESTART))
    plan = Plan((at_start,), (), (), None)
    with pytest.raises(PermissionNotGivenError) as caught:
        apply_plan(access, ApplyRequest(plan))
    assert caught.value.message == "1 of 1 changes need a restart, which was not allowed"
    result = apply_plan(access, ApplyRequest(plan, allow_restart=True))
    assert result.restarts == 1
    assert server.execute("SHOW huge_pages_status") == [("on",)]
    assert revert(access, ALL).is_complete
    assert server.execute("SHOW huge_pages_status") == [("on",)]  # they are lent until its next restart
    subprocess.run(pg_ctl_restart(server), check=True)
    assert server.execute("SHOW huge_pages_status") == [("off",)]
