"""Changes on a machine with receipts, on a directory that looks like one."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.apply.machines import (
    AUTOGROUP,
    BOOT,
    DEPTH,
    POOL,
    SCHEDULER,
    SWAPPINESS,
    carry_out,
    change,
    let_kernel,
    make_machine,
    put,
    value_of,
)
from tests.unit.apply.receipts import receipt

from pgdyno.apply.ledger.log import Journal, open_journal, read_journal
from pgdyno.apply.revert_host import affects_only_host
from pgdyno.apply.runs.changes import prepare, receipts_for, write_receipts
from pgdyno.apply.runs.host_run import HostRun, host_target, host_writers, receipts_of_host
from pgdyno.apply.session.access import ServerAccess, no_steps
from pgdyno.base.errors import PgdynoError, ServerError, SettingError, StorageError
from pgdyno.model.plans.journal import OnDrift, Receipt, ReceiptState, Target
from pgdyno.model.plans.plan import HUGE_PAGES, KERNEL, kind_of
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.process.workspace import JOURNAL_FILE

WANTED = {SWAPPINESS: "10", AUTOGROUP: "0"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_machine(tmp_path / "machine")


def shown(root: Path) -> dict[str, str]:
    return {path: value_of(root, path) for path in WANTED}


def newest_first(journal: Journal) -> tuple[Receipt, ...]:
    return journal.read().open[::-1]


def receipts_of(root: Path, values: Mapping[str, str]) -> tuple[Receipt, ...]:
    changes = [change(path, value) for path, value in values.items()]
    return receipts_for("apply-1", host_target(), prepare(changes, host_writers(root)))


def only_receipts(root: Path, journal: Journal, path: str, value: str) -> HostRun:
    """Return a run that was killed when its receipt was written."""
    run = HostRun(journal, host_writers(root))
    write_receipts(journal, receipts_of(root, {path: value}), run.steps)
    return run


def test_all_receipts_are_written_before_anything_is_changed(root: Path, journal: Journal) -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    run = HostRun(journal, host_writers(root), lambda step: seen.append((step, shown(root))))
    receipts = receipts_of(root, WANTED)
    write_receipts(journal, receipts, run.steps)
    run.carry_out(receipts)
    before = [state for step, state in seen if step.startswith(("receipt ", "rehearsed "))]
    assert before == [{SWAPPINESS: "60", AUTOGROUP: "1"}] * 4
    assert shown(root) == WANTED


def test_undo_gives_back_what_was_found_and_closes_the_receipts(root: Path, journal: Journal) -> None:
    run, receipts = carry_out(root, journal, WANTED)
    done = run.undo(receipts)
    assert shown(root) == {SWAPPINESS: "60", AUTOGROUP: "1"}
    assert [one.state for one in done.receipts] == [ReceiptState.REVERTED] * 2
    assert journal.read().open == ()


def test_two_changes_of_one_file_go_back_one_after_the_other(root: Path, journal: Journal) -> None:
    carry_out(root, journal, {SWAPPINESS: "10"})
    run, _ = carry_out(root, journal, {SWAPPINESS: "5"}, "apply-2")
    done = run.undo(newest_first(journal))
    assert [(one.apply_id, one.effective) for one in done.receipts] == [("apply-2", "10"), ("apply-1", "60")]
    assert shown(root)[SWAPPINESS] == "60"


def test_what_somebody_else_has_changed_is_left_alone(root: Path, journal: Journal) -> None:
    run, receipts = carry_out(root, journal, WANTED)
    put(root, SWAPPINESS, "1")
    (drift,) = run.undo(receipts).drifted
    assert (drift.key, drift.wanted, drift.now) == (SWAPPINESS, "10", "1")
    assert shown(root) == {SWAPPINESS: "1", AUTOGROUP: "1"}
    run.undo(journal.read().open, OnDrift.OVERWRITE)
    assert shown(root)[SWAPPINESS] == "60"


def test_a_change_below_one_that_is_left_alone_is_left_alone_too(root: Path, journal: Journal) -> None:
    """Else restoring the upper one later would bring back what the lower one had set."""
    carry_out(root, journal, {SWAPPINESS: "10"})
    run, _ = carry_out(root, journal, {SWAPPINESS: "5"}, "apply-2")
    put(root, SWAPPINESS, "60")
    assert [one.wanted for one in run.undo(newest_first(journal)).drifted] == ["5"]
    assert len(journal.read().open) == 2
    run.undo(newest_first(journal), OnDrift.OVERWRITE)
    assert shown(root)[SWAPPINESS] == "60"


def test_what_somebody_has_put_back_is_not_touched(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, receipts = carry_out(root, journal, {SWAPPINESS: "10"})
    put(root, SWAPPINESS, "60")
    let_kernel(monkeypatch, lambda _root, path, _value: pytest.fail(f"{path} was written"))
    assert run.undo(receipts).drifted == ()
    assert journal.read().open == ()


def test_what_the_machine_has_forgotten_is_closed_and_not_written(root: Path, journal: Journal) -> None:
    run, receipts = carry_out(root, journal, WANTED)
    put(root, BOOT, "second")
    put(root, SWAPPINESS, "30")  # what this boot was configured with
    (root / AUTOGROUP.lstrip("/")).unlink()  # and its kernel was built without
    done = run.undo(receipts)
    assert {one.note for one in done.receipts} == {"discarded by a restart of the machine"}
    assert value_of(root, SWAPPINESS) == "30"
    assert journal.read().open == ()


def test_a_device_that_was_taken_out_keeps_nothing_else_changed(root: Path, journal: Journal) -> None:
    run, receipts = carry_out(root, journal, WANTED)
    (root / AUTOGROUP.lstrip("/")).unlink()
    done = run.undo(receipts)
    assert [(one.key, one.now) for one in done.drifted] == [(AUTOGROUP, None)]
    assert value_of(root, SWAPPINESS) == "60"
    assert run.undo(journal.read().open, OnDrift.KEEP).receipts[0].state is ReceiptState.RELEASED


def test_a_value_that_does_not_come_back_is_an_error(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, receipts = carry_out(root, journal, WANTED)
    let_kernel(monkeypatch, lambda _root, path, value: "0" if path == AUTOGROUP else value)
    with pytest.raises(ServerError) as caught:
        run.undo(receipts)
    assert str(caught.value) == (
        "kernel.sched_autogroup_enabled could not be restored\n"
        "DETAIL:  the original value was 1, the kernel shows 0"
    )
    assert shown(root)[SWAPPINESS] == "60"
    assert [one.key for one in journal.read().open] == [AUTOGROUP]


def test_a_disk_without_room_for_the_journal_keeps_nothing_changed(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, receipts = carry_out(root, journal, WANTED)
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(StorageError) as caught:
        run.undo(receipts)
    assert caught.value.detail == "No space left on device"
    assert shown(root) == {SWAPPINESS: "60", AUTOGROUP: "1"}
    assert len(journal.read().open) == 2


def full_disk(_file: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_the_kernel_takes_back_only_after_something_else_is_tried_again(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue is not as deep without a scheduler."""
    make_machine(root, {SCHEDULER: "mq-deadline", DEPTH: "256"})
    run, receipts = carry_out(root, journal, {SCHEDULER: "none", DEPTH: "64"})

    def react(root: Path, path: str, value: str) -> str:
        if path == DEPTH and int(value) > 128 and value_of(root, SCHEDULER) == "none":
            raise SettingError("too deep")
        return value

    let_kernel(monkeypatch, react)
    assert [one.key for one in run.undo(receipts).receipts] == [DEPTH, SCHEDULER]
    assert (value_of(root, SCHEDULER), value_of(root, DEPTH)) == ("mq-deadline", "256")
    assert journal.read().open == ()


def test_what_a_scheduler_sets_anew_comes_back_after_a_kill_as_well(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    tunable = "/sys/block/sda/queue/iosched/fifo_batch"
    make_machine(root, {SCHEDULER: "none [mq-deadline]", DEPTH: "64", tunable: "3"})
    run, receipts = carry_out(root, journal, {SCHEDULER: "none"})

    class KilledError(Exception):
        """Stands for the end of the process."""

    def killed(root: Path, path: str, value: str) -> str:
        if path != SCHEDULER:
            raise KilledError
        put(root, DEPTH, "256")
        put(root, tunable, "16")
        return value

    with monkeypatch.context() as first:
        let_kernel(first, killed)
        with pytest.raises(KilledError):
            run.undo(receipts)
    assert (value_of(root, SCHEDULER), value_of(root, DEPTH)) == ("mq-deadline", "256")
    assert run.undo(newest_first(journal)).drifted == ()
    assert (value_of(root, DEPTH), value_of(root, tunable)) == ("64", "3")


def test_a_value_that_the_kernel_would_not_take_back_is_never_replaced(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    preempt = "/sys/kernel/debug/sched/preempt"
    make_machine(root, {preempt: "none voluntary (full) lazy"})

    def react(_root: Path, _path: str, value: str) -> str:
        if " " in value:
            raise SettingError("the kernel does not take it", detail="Invalid argument")
        return value

    let_kernel(monkeypatch, react)
    with pytest.raises(SettingError) as caught:
        carry_out(root, journal, {SWAPPINESS: "10", preempt: "none"})
    assert str(caught.value) == (
        f"{preempt} is not changed, because it could not be restored\n"
        "DETAIL:  the kernel does not take it: Invalid argument\n"
        "HINT:  omit it"
    )
    assert shown(root)[SWAPPINESS] == "60"


def test_what_the_kernel_made_of_a_value_is_ours(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_kernel(monkeypatch, lambda _root, _path, value: "64" if value == "65" else value)
    with pytest.raises(ServerError, match="did not take effect"):
        carry_out(root, journal, {SWAPPINESS: "65"})
    assert shown(root)[SWAPPINESS] == "64"
    run = HostRun(journal, host_writers(root))
    assert run.undo(newest_first(journal)).drifted == ()
    assert shown(root)[SWAPPINESS] == "60"


def test_half_a_pool_is_ours_after_a_failure(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_kernel(monkeypatch, lambda _root, _path, value: "300" if value == "500" else value)
    with pytest.raises(SettingError, match="only 300 of 500"):
        carry_out(root, journal, {POOL: "500"})
    assert HostRun(journal, host_writers(root)).undo(newest_first(journal)).drifted == ()
    assert value_of(root, POOL) == "100"


def test_half_a_pool_is_ours_after_a_kill(root: Path, journal: Journal) -> None:
    """A process is killed while the kernel looks for pages: those that it has found by then stay."""
    run = only_receipts(root, journal, POOL, "500")
    put(root, POOL, "300")
    assert run.undo(newest_first(journal)).drifted == ()
    assert value_of(root, POOL) == "100"


def test_a_pool_of_a_size_that_we_never_asked_for_is_somebody_elses(root: Path, journal: Journal) -> None:
    run = only_receipts(root, journal, POOL, "500")
    put(root, POOL, "501")
    assert [one.now for one in run.undo(newest_first(journal)).drifted] == ["501"]


def test_once_a_pool_was_seen_full_any_other_size_is_somebody_elses(root: Path, journal: Journal) -> None:
    run, receipts = carry_out(root, journal, {POOL: "500"})
    put(root, POOL, "300")
    assert [one.now for one in run.undo(receipts).drifted] == ["300"]


def test_a_pool_that_comes_back_in_part_is_filled_by_the_next_revert(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, receipts = carry_out(root, journal, {POOL: "0"})
    with monkeypatch.context() as scattered:
        let_kernel(scattered, lambda _root, _path, value: "40" if value == "100" else value)
        with pytest.raises(SettingError, match="only 40 of 100"):
            run.undo(receipts)
    assert value_of(root, POOL) == "40"
    assert run.undo(newest_first(journal)).drifted == ()
    assert value_of(root, POOL) == "100"


def test_ctrl_c_while_the_kernel_looks_for_pages_is_undone(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(root: Path, path: str, value: str) -> str:
        if value == "500":
            put(root, path, "300")
            raise KeyboardInterrupt
        return value

    let_kernel(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        carry_out(root, journal, {POOL: "500"})
    assert HostRun(journal, host_writers(root)).undo(newest_first(journal)).drifted == ()
    assert value_of(root, POOL) == "100"


def test_the_machine_is_undone_with_the_server_whose_plan_asked_for_it(root: Path, journal: Journal) -> None:
    mine, theirs = (Target("server", name, None, None, f"host={name}") for name in ("mine", "theirs"))
    carry_out(root, journal, {SWAPPINESS: "10"}, server=theirs)
    carry_out(root, journal, {AUTOGROUP: "0"}, "trial-1")
    receipts = journal.read().receipts
    assert [one.key for one in receipts_of_host(receipts, mine)] == [AUTOGROUP]
    assert [one.key for one in receipts_of_host(receipts, theirs)] == [AUTOGROUP, SWAPPINESS]
    assert [one.key for one in receipts_of_host(receipts, None)] == [AUTOGROUP, SWAPPINESS]


def test_another_machine_is_not_undone_here(root: Path, journal: Journal) -> None:
    """As with a home directory that several machines mount: each has its own boots."""
    _, (receipt,) = carry_out(root, journal, {SWAPPINESS: "10"})
    elsewhere = replace(receipt, target=replace(receipt.target, identity="other", machine="other"))
    assert receipts_of_host([elsewhere], None) == ()
    assert receipts_of_host([receipt], None) == (receipt,)


def test_receipts_name_the_machine() -> None:
    target = host_target()
    assert target.kind == "host"
    assert target.identity == target.machine


def test_a_machine_without_an_id_is_not_changed(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pgdyno.apply.session.target._MACHINE_ID", tmp_path / "none")
    with pytest.raises(PgdynoError) as caught:
        carry_out(root, journal, WANTED)
    assert str(caught.value) == (
        "this machine has no id for receipts to identify it\n"
        "DETAIL:  /etc/machine-id is missing or empty\n"
        "HINT:  create one with systemd-machine-id-setup"
    )
    assert shown(root) == {SWAPPINESS: "60", AUTOGROUP: "1"}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (POOL, HUGE_PAGES),
        ("/proc/sys/vm/nr_hugepages", HUGE_PAGES),
        ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", HUGE_PAGES),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages", KERNEL),
        (SWAPPINESS, KERNEL),
    ],
)
def test_pools_have_a_writer_of_their_own(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_no_server_is_needed_for_what_trials_have_left(root: Path, journal: Journal, tmp_path: Path) -> None:
    access = ServerAccess(_no_server, tmp_path / "journal", inspect_server)
    assert not affects_only_host(access), "nothing is open"
    write_receipts(journal, receipts_of(root, WANTED), no_steps)
    assert affects_only_host(access)
    write_receipts(journal, [receipt()], no_steps)
    assert not affects_only_host(access), "a setting of a server is changed as well"


def test_what_a_servers_plan_has_changed_on_the_machine_is_left_to_that_server(
    root: Path, journal: Journal, tmp_path: Path
) -> None:
    of_a_plan = [replace(one, server=receipt().target) for one in receipts_of(root, WANTED)]
    write_receipts(journal, of_a_plan, no_steps)
    assert not affects_only_host(ServerAccess(_no_server, tmp_path / "journal", inspect_server))


def test_a_damaged_journal_may_hide_a_servers_receipt(root: Path, tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal") as journal:
        write_receipts(journal, receipts_of(root, WANTED), no_steps)
    file = tmp_path / "journal" / JOURNAL_FILE
    first, *others = file.read_text().splitlines(keepends=True)
    file.write_text("".join(["{}\n", first, *others]))
    access = ServerAccess(_no_server, tmp_path / "journal", inspect_server)
    assert read_journal(access.journal_directory).damage
    assert not affects_only_host(access)


def _no_server(database: str | None = None) -> Connection:
    raise AssertionError(f"a server was asked for {database}")
