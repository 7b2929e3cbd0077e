"""Receipts first, then changes, and an exact way back; with a writer that keeps its values in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.apply.receipts import TARGET, MemoryWriter, change, receipt

from pgdyno.apply.ledger.log import Journal, open_journal, read_journal
from pgdyno.apply.runs.changes import Prepared, make_changes, prepare, read_back, receipts_for, write_receipts
from pgdyno.apply.runs.undo import restore_all
from pgdyno.apply.session.access import Steps, no_steps
from pgdyno.base.errors import ServerError, SettingError, UsageError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Drift, OnDrift, Receipt, ReceiptState, Target
from pgdyno.model.plans.plan import Change, Effect

VALUES = st.sampled_from(["1", "2", "3"])
STATES = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES)
PLANS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), VALUES, min_size=1)


def written(journal: Journal, prepared: Sequence[Prepared], steps: Steps) -> tuple[Receipt, ...]:
    """Write receipts for changes, and return them."""
    receipts = receipts_for("one", TARGET, prepared)
    write_receipts(journal, receipts, steps)
    return receipts


class KilledError(Exception):
    """Stands for the end of the process."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=STATES, plan=PLANS, stop=st.integers(0, 20))
def test_wherever_it_stops_restoring_gives_the_state_before(
    tmp_path: Path, before: dict[str, str], plan: dict[str, str], stop: int
) -> None:
    writer = MemoryWriter(dict(before))
    directory = tmp_path / "journal"
    for file in directory.glob("*"):
        file.unlink()
    left = [stop]

    def step(_name: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KilledError

    with open_journal(directory) as journal:
        try:
            prepared = prepare([change(key, value) for key, value in plan.items()], {"setting": writer})
            receipts = written(journal, prepared, step)
            make_changes(journal, {"setting": writer}, receipts, step)
        except KilledError:
            pass
        for _ in range(2):
            restore_all(
                journal, {"setting": writer}, journal.read().open[::-1], on_drift=OnDrift.SKIP, steps=no_steps
            )
    assert writer.values == before


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


@pytest.mark.parametrize(
    ("on_drift", "value", "state", "drifts"),
    [
        (OnDrift.SKIP, "5MB", ReceiptState.WRITTEN, 1),
        (OnDrift.OVERWRITE, "4MB", ReceiptState.WRITTEN, 0),
        (OnDrift.KEEP, "5MB", ReceiptState.RELEASED, 0),
    ],
)
def test_a_key_that_somebody_else_changed_gets_what_the_user_wants(
    tmp_path: Path, on_drift: OnDrift, value: str, state: ReceiptState, drifts: int
) -> None:
    writer = MemoryWriter({"work_mem": "5MB"})
    one = receipt(found="4MB")
    with open_journal(tmp_path) as journal:
        journal.add(one)
        done = restore_all(journal, {"setting": writer}, [one], on_drift=on_drift, steps=no_steps)
    assert writer.values["work_mem"] == value
    assert read_journal(tmp_path).receipts[0].state is state
    assert done.drifted == (Drift("work_mem", "4MB", "8MB", "5MB"),) * drifts


@pytest.mark.parametrize("now", ["4MB", "8MB", "512"])
def test_what_was_found_what_we_set_and_what_we_set_in_passing_is_no_drift(tmp_path: Path, now: str) -> None:
    writer = MemoryWriter({"work_mem": now})
    with open_journal(tmp_path) as journal:
        journal.add(receipt(found="4MB"))
        one = journal.intend(receipt(found="4MB"), "512")
        done = restore_all(journal, {"setting": writer}, [one], on_drift=OnDrift.SKIP, steps=no_steps)
    assert (len(done.restored), done.drifted) == (1, ())
    assert writer.values == {"work_mem": "4MB"}


class Stubborn(MemoryWriter):
    """Does not restore ``jit``."""

    def restore(self, key: str, found: Found) -> None:
        if key == "jit":
            raise SettingError("jit stays as it is")
        super().restore(key, found)


def test_a_value_that_cannot_be_restored_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    writer = Stubborn({"jit": "8MB", "work_mem": "8MB"})
    older, newer = receipt("jit", found="2MB", number=1), receipt("jit", found="4MB", number=2)
    other = receipt("work_mem", found="4MB", number=3)
    with open_journal(tmp_path) as journal:
        journal.add(older, newer, other)
        receipts = [newer, older, other]
        done = restore_all(journal, {"setting": writer}, receipts, on_drift=OnDrift.SKIP, steps=no_steps)
    assert writer.values == {"jit": "8MB", "work_mem": "4MB"}
    assert (done.restored, done.drifted, len(done.errors)) == ((other,), (), 1)
    with pytest.raises(SettingError, match="jit stays as it is"):
        done.check()


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
