"""Changes are undone from the last to the first, wherever it stops."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.apply.receipts import MemoryWriter, change, receipt
from tests.unit.apply.runs.test_changes import written

from pgdyno.apply.ledger.log import open_journal, read_journal
from pgdyno.apply.runs.changes import make_changes, prepare
from pgdyno.apply.runs.undo import restore_all
from pgdyno.apply.session.access import no_steps
from pgdyno.base.errors import SettingError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Drift, OnDrift, ReceiptState

VALUES = st.sampled_from(["1", "2", "3"])
STATES = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES)
PLANS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), VALUES, min_size=1)


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
