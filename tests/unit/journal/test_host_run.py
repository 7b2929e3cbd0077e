"""Changes on a machine with receipts, on a directory that looks like one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.journal.changes import prepare
from pgdyno.journal.host_run import HostRun, host_target, host_writers, receipts_of_host
from pgdyno.journal.log import Journal, open_journal
from pgdyno.model.errors import ServerError
from pgdyno.model.journal import OnDrift, Receipt, ReceiptState, Target
from pgdyno.model.plan import KERNEL, Change, Effect

SWAPPINESS, AUTOGROUP = "/proc/sys/vm/swappiness", "/proc/sys/kernel/sched_autogroup_enabled"
BOOT = "/proc/sys/kernel/random/boot_id"
VALUES = {SWAPPINESS: "10", AUTOGROUP: "0"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, value in {SWAPPINESS: "60", AUTOGROUP: "1", BOOT: "first"}.items():
        put(tmp_path, path, value)
    return tmp_path


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal") as opened:
        yield opened


def put(root: Path, path: str, value: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{value}\n")


def shown(root: Path) -> dict[str, str]:
    return {path: (root / path.lstrip("/")).read_text().strip() for path in VALUES}


def changed(root: Path, journal: Journal) -> tuple[HostRun, tuple[Receipt, ...]]:
    run = HostRun(journal, host_writers(root))
    changes = [Change("lever", KERNEL, path, None, value, Effect.IMMEDIATE) for path, value in VALUES.items()]
    receipts = run.carry_out("apply-1", prepare(changes, run.writers))
    return run, receipts[::-1]


def test_all_receipts_are_written_before_anything_is_changed(root: Path, journal: Journal) -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    run = HostRun(journal, host_writers(root), lambda step: seen.append((step, shown(root))))
    changes = [Change("lever", KERNEL, path, None, value, Effect.IMMEDIATE) for path, value in VALUES.items()]
    run.carry_out("apply-1", prepare(changes, run.writers))
    before = [state for step, state in seen if step.startswith("receipt ")]
    assert before == [{SWAPPINESS: "60", AUTOGROUP: "1"}] * 2
    assert shown(root) == VALUES


def test_undo_gives_back_what_was_found_and_closes_the_receipts(root: Path, journal: Journal) -> None:
    run, receipts = changed(root, journal)
    done = run.undo(receipts)
    assert shown(root) == {SWAPPINESS: "60", AUTOGROUP: "1"}
    assert [one.state for one in done.receipts] == [ReceiptState.REVERTED] * 2
    assert journal.read().open == ()


def test_what_somebody_else_has_changed_is_left_alone(root: Path, journal: Journal) -> None:
    run, receipts = changed(root, journal)
    put(root, SWAPPINESS, "1")
    (drift,) = run.undo(receipts).drifted
    assert (drift.key, drift.wanted, drift.now) == (SWAPPINESS, "10", "1")
    assert shown(root) == {SWAPPINESS: "1", AUTOGROUP: "1"}
    run.undo(journal.read().open, OnDrift.OVERWRITE)
    assert shown(root)[SWAPPINESS] == "60"


def test_what_the_machine_has_forgotten_is_closed_and_not_written(root: Path, journal: Journal) -> None:
    run, receipts = changed(root, journal)
    put(root, BOOT, "second")
    put(root, SWAPPINESS, "30")  # what this boot was configured with
    done = run.undo(receipts)
    assert {one.note for one in done.receipts} == {"gone by itself: the machine was restarted since"}
    assert shown(root) == {SWAPPINESS: "30", AUTOGROUP: "0"}
    assert journal.read().open == ()


def test_a_value_that_does_not_come_back_is_an_error(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, receipts = changed(root, journal)
    monkeypatch.setattr("pgdyno.journal.writers.kernel_file.os.write", lambda *_: 0)
    with pytest.raises(ServerError, match=f"{AUTOGROUP} could not be restored"):
        run.undo(receipts)
    assert len(journal.read().open) == 2


def test_a_machine_that_was_changed_with_another_server_is_not_this_servers(
    root: Path, journal: Journal
) -> None:
    _, receipts = changed(root, journal)
    mine, theirs = (Target("server", name, None, None, f"host={name}") for name in ("mine", "theirs"))
    setting = Change("lever", "setting", "work_mem", "4MB", "8MB", Effect.RELOAD)
    of_theirs = replace(receipts[0], id="apply-1/09", change=setting, target=theirs)
    alone, together = receipts, (*receipts, of_theirs)
    assert len(receipts_of_host(alone, mine)) == 2
    assert receipts_of_host(together, mine) == ()
    assert len(receipts_of_host(together, theirs)) == len(receipts_of_host(together, None)) == 2


def test_receipts_name_the_machine() -> None:
    target = host_target()
    assert target.kind == "host"
    assert target.identity == target.machine
