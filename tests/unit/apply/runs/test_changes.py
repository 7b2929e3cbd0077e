"""Receipts first, then changes, and an exact way back; with a writer that keeps its values in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.apply.receipts import TARGET, MemoryWriter, change

from pgdyno.apply.ledger.log import Journal, open_journal, read_journal
from pgdyno.apply.runs.changes import Prepared, make_changes, prepare, read_back, receipts_for, write_receipts
from pgdyno.apply.session.access import Steps, no_steps
from pgdyno.base.errors import ServerError, SettingError, UsageError
from pgdyno.model.plans.journal import Receipt, ReceiptState, Target
from pgdyno.model.plans.plan import Change, Effect


def written(journal: Journal, prepared: Sequence[Prepared], steps: Steps) -> tuple[Receipt, ...]:
    """Write receipts for changes, and return them."""
    receipts = receipts_for("one", TARGET, prepared)
    write_receipts(journal, receipts, steps)
    return receipts


def test_all_receipts_are_on_disk_before_the_first_change(tmp_path: Path) -> None:
    writer = MemoryWriter()
    seen = []

    def step(name: str) -> None:
        seen.append((name, len(read_journal(tmp_path).receipts), list(writer.done)))

    with open_journal(tmp_path) as journal:
        prepared = prepare([change("a", "1"), change("b", "2")], {"setting": writer})
        receipts = written(journal, prepared, step)
        make_changes(journal, {"setting": writer}, receipts, step)
    assert seen == [
        ("receipt a", 2, []),
        ("receipt b", 2, []),
        ("changed a", 2, ["write a=1"]),
        ("applied a", 2, ["write a=1"]),
        ("changed b", 2, ["write a=1", "write b=2"]),
        ("applied b", 2, ["write a=1", "write b=2"]),
    ]


def test_a_change_that_fails_is_noted_and_ends_it(tmp_path: Path) -> None:
    writer = MemoryWriter(rejected=frozenset({"b"}))
    with open_journal(tmp_path) as journal:
        prepared = prepare([change("a"), change("b"), change("c")], {"setting": writer})
        receipts = written(journal, prepared, no_steps)
        with pytest.raises(SettingError):
            make_changes(journal, {"setting": writer}, receipts, no_steps)
    assert [one.state for one in read_journal(tmp_path).open] == [
        ReceiptState.APPLIED,
        ReceiptState.FAILED,
        ReceiptState.WRITTEN,
    ]
    assert read_journal(tmp_path).open[1].note == 'invalid value for parameter "b": "8MB"'


def test_a_change_that_is_not_in_force_is_an_error_with_both_values(tmp_path: Path) -> None:
    writer = MemoryWriter()
    with open_journal(tmp_path) as journal:
        receipts = written(journal, prepare([change("a")], {"setting": writer}), no_steps)
        receipts = make_changes(journal, {"setting": writer}, receipts, no_steps)
        writer.values["a"] = "4MB"
        with pytest.raises(ServerError) as caught:
            read_back(journal, {"setting": writer}, receipts, no_steps)
    assert caught.value.message == "1 changes did not take effect"
    assert caught.value.detail == "a: requested 8MB, in force 4MB"
    assert read_journal(tmp_path).open[0].effective == "4MB"


def test_a_kind_that_nobody_can_write_is_refused() -> None:
    other = Change("thp", "sysfs", "transparent_hugepage/enabled", None, "never", Effect.IMMEDIATE)
    with pytest.raises(UsageError) as caught:
        prepare([other], {})
    assert caught.value.message == 'pgdyno cannot apply changes of kind "sysfs"'


def test_receipts_of_one_apply_for_machine_and_server_are_told_apart(tmp_path: Path) -> None:
    machine = Target("host", "1d", None, "1d", "db1")
    writer = MemoryWriter()
    with open_journal(tmp_path) as journal:
        for target in (machine, TARGET):
            prepared = prepare([change(target.kind)], {"setting": writer})
            write_receipts(journal, receipts_for("one", target, prepared), no_steps)
    assert [(one.key, one.id) for one in read_journal(tmp_path).open] == [
        ("host", "one/host-01"),
        ("server", "one/server-01"),
    ]
