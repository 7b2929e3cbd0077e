"""Dividing the processor's caches beside others, whose groups, divisions and mounts stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_cache_division import DIVIDED, GROUP, GROUP_PATH, MOUNT, OTHERS, SERVER, carry_out, files, undo
from tests.unit.apply.machines import put, value_of
from tests.unit.apply.resctrl import (
    ALL,
    BACKEND,
    RESCTRL,
    WHOLE,
    FakeResctrl,
    make_divisible,
    tasks_of,
    writers_of,
)

from pgdyno.apply.ledger.log import Journal
from pgdyno.apply.runs.changes import prepare, receipts_for, write_receipts
from pgdyno.apply.runs.host_run import HostRun, host_target
from pgdyno.apply.session.access import no_steps
from pgdyno.apply.writers.cache_group import CacheGroupWriter
from pgdyno.base.errors import OwnershipError, RefusedError, SettingError
from pgdyno.host.cache_allocation import OF_GROUP, OF_OTHERS
from pgdyno.model.plans.journal import OnDrift


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_divisible(tmp_path / "machine")


def test_a_group_that_is_there_is_neither_taken_over_nor_removed(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    FakeResctrl(root).make_group(f"{RESCTRL}/pgdyno")
    before = files(root)
    with pytest.raises(OwnershipError) as caught:
        carry_out(root, journal, GROUP)
    assert caught.value.message == "the group /sys/fs/resctrl/pgdyno already exists"
    assert journal.read().open == ()
    assert files(root) == before


def test_a_group_that_came_after_the_check_is_not_removed_either(root: Path, journal: Journal) -> None:
    """Its receipt is there, but what was found says that the group was there before."""
    FakeResctrl(root).mount(with_cdp=True)
    FakeResctrl(root).make_group(f"{RESCTRL}/pgdyno")
    before = files(root)
    run = HostRun(journal, writers_of(root))
    receipts = receipts_for("apply-1", host_target(), prepare((GROUP,), run.writers))
    write_receipts(journal, receipts, no_steps)
    with pytest.raises(OwnershipError):
        run.carry_out(receipts)
    assert undo(root, journal) == []
    assert files(root) == before


def test_a_group_made_after_the_rehearsal_is_neither_claimed_nor_removed(
    root: Path, journal: Journal
) -> None:
    """Even one that has just our division."""
    FakeResctrl(root).mount(with_cdp=True)

    def make_it(step: str) -> None:
        if step.startswith("rehearsed"):
            FakeResctrl(root).make_group(GROUP_PATH)
            put(root, OF_GROUP, DIVIDED.replace(" ", "\n"))

    with pytest.raises(OwnershipError) as caught:
        carry_out(root, journal, GROUP, steps=make_it)
    assert caught.value.message == "the group /sys/fs/resctrl/pgdyno already exists"
    assert journal.read().open == ()
    before = files(root)
    assert undo(root, journal) == []
    assert files(root) == before
    assert value_of(root, OF_GROUP) == DIVIDED.replace(" ", "\n")


def test_a_group_made_after_the_receipts_is_not_removed(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)

    def make_it(step: str) -> None:
        if step.startswith("receipt"):
            FakeResctrl(root).make_group(GROUP_PATH)

    with pytest.raises(OwnershipError):
        carry_out(root, journal, GROUP, steps=make_it)
    assert journal.read().open == ()
    assert undo(root, journal) == []
    assert value_of(root, OF_GROUP) == ALL


def test_an_empty_group_found_after_a_kill_may_be_somebody_elses(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    run = HostRun(journal, writers_of(root))
    write_receipts(journal, receipts_for("apply-1", host_target(), prepare((GROUP,), run.writers)), no_steps)
    FakeResctrl(root).make_group(GROUP_PATH)
    assert undo(root, journal) == [OF_GROUP]
    assert value_of(root, OF_GROUP) == ALL
    assert undo(root, journal, OnDrift.KEEP) == []
    assert value_of(root, OF_GROUP) == ALL
    assert journal.read().open == ()


def test_a_group_that_comes_while_another_change_fails_is_not_claimed(
    root: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeResctrl(root).mount(with_cdp=False)

    def fail(_writer: CacheGroupWriter, _key: str, _value: str) -> None:
        FakeResctrl(root).make_group(GROUP_PATH)
        raise SettingError("the kernel does not divide so")

    monkeypatch.setattr(CacheGroupWriter, "write", fail)
    with pytest.raises(SettingError):
        carry_out(root, journal, OTHERS, SERVER)
    assert undo(root, journal) == [OF_GROUP]
    assert value_of(root, OF_GROUP) == WHOLE


def test_somebody_elses_group_of_that_name_is_left_alone_after_a_kill(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    run = HostRun(journal, writers_of(root))
    write_receipts(journal, receipts_for("apply-1", host_target(), prepare((GROUP,), run.writers)), no_steps)
    FakeResctrl(root).make_group(f"{RESCTRL}/pgdyno")
    put(root, f"{RESCTRL}/pgdyno/tasks", str(BACKEND))
    assert undo(root, journal) == [OF_GROUP]
    assert tasks_of(root, "pgdyno") == [BACKEND]


def test_what_others_have_set_since_is_left_alone(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=False)
    carry_out(root, journal, OTHERS)
    put(root, OF_OTHERS, "L2:0=ff;1=ff\nL3:0=ff;1=ff")
    assert undo(root, journal) == [OF_OTHERS]
    assert value_of(root, OF_OTHERS) == "L2:0=ff;1=ff\nL3:0=ff;1=ff"
    assert undo(root, journal, OnDrift.OVERWRITE) == []
    assert value_of(root, OF_OTHERS) == WHOLE


def test_it_is_not_unmounted_while_others_have_groups(root: Path, journal: Journal) -> None:
    carry_out(root, journal, MOUNT)
    FakeResctrl(root).make_group(f"{RESCTRL}/batch")
    with pytest.raises(RefusedError) as caught:
        undo(root, journal)
    assert caught.value.detail == "groups: batch"
    assert value_of(root, f"{RESCTRL}/batch/schemata") == ALL
    FakeResctrl(root).remove_group(f"{RESCTRL}/batch")
    assert undo(root, journal) == []
    assert files(root) == {}


def test_our_group_is_not_removed_while_others_measure_in_it(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    before = files(root)
    carry_out(root, journal, GROUP)
    watched = root / f"{GROUP_PATH}/mon_groups/watched".lstrip("/")
    watched.mkdir()
    with pytest.raises(RefusedError) as caught:
        undo(root, journal)
    assert caught.value.detail == "in /sys/fs/resctrl/pgdyno/mon_groups: watched"
    assert watched.is_dir()
    watched.rmdir()
    assert undo(root, journal) == []
    assert files(root) == before


@pytest.mark.parametrize(
    ("place", "shown"),
    [("mon_groups/watched", "mon_groups/watched"), ("batch/mon_groups/one", "batch, batch/mon_groups/one")],
)
def test_it_is_not_unmounted_while_others_measure(
    root: Path, journal: Journal, place: str, shown: str
) -> None:
    carry_out(root, journal, MOUNT)
    (root / f"{RESCTRL}/{place}".lstrip("/")).mkdir(parents=True)
    with pytest.raises(RefusedError) as caught:
        undo(root, journal)
    assert caught.value.detail == f"groups: {shown}"
    assert (root / f"{RESCTRL}/{place}".lstrip("/")).is_dir()


def test_it_is_not_unmounted_while_all_tasks_have_less_than_all(root: Path, journal: Journal) -> None:
    carry_out(root, journal, MOUNT)
    put(root, OF_OTHERS, ALL.replace("L2:0=ff", "L2:0=0f"))
    with pytest.raises(RefusedError) as caught:
        undo(root, journal)
    assert caught.value.message == (
        "/sys/fs/resctrl is not unmounted: someone else has divided the caches of all tasks"
    )
    assert caught.value.detail == (
        "/sys/fs/resctrl/schemata contains L2:0=f;1=ff L3CODE:0=fffff;1=fffff L3DATA:0=fffff;1=fffff"
    )
    put(root, OF_OTHERS, ALL)
    assert undo(root, journal) == []
    assert files(root) == {}


def test_a_whole_cache_that_the_kernel_does_not_describe_counts_as_divided(
    root: Path, journal: Journal
) -> None:
    carry_out(root, journal, MOUNT)
    (root / f"{RESCTRL}/info/L2/cbm_mask".lstrip("/")).unlink()
    with pytest.raises(RefusedError):
        undo(root, journal)
    assert value_of(root, OF_OTHERS) == ALL


def test_what_somebody_else_has_mounted_meanwhile_stays_mounted(root: Path, journal: Journal) -> None:
    def mount_it(step: str) -> None:
        if step.startswith("rehearsed"):
            FakeResctrl(root).mount(with_cdp=True)

    with pytest.raises(OwnershipError) as caught:
        carry_out(root, journal, MOUNT, steps=mount_it)
    assert caught.value.message == "/sys/fs/resctrl is already mounted, cdp"
    assert undo(root, journal) == []
    assert value_of(root, OF_OTHERS) == ALL
