"""Dividing the processor's caches with receipts, killed anywhere."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.fix_cache_division import DIVIDED, GROUP, GROUP_PATH, MOUNT, OTHERS, SERVER, carry_out, files, undo
from tests.unit.apply.machines import BOOT, put, value_of
from tests.unit.apply.resctrl import (
    ALL,
    BACKEND,
    POSTMASTER,
    RESCTRL,
    WHOLE,
    FakeResctrl,
    make_divisible,
    tasks_of,
    writers_of,
)

from pgdyno.apply.ledger.log import Journal, open_journal
from pgdyno.base.errors import RefusedError, ServerError, SettingError
from pgdyno.host.cache_allocation import OF_GROUP, OF_OTHERS
from pgdyno.model.plans.journal import ReceiptState
from pgdyno.model.plans.plan import CACHE_GROUP, Change, Effect


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_divisible(tmp_path / "machine")


def test_the_servers_processes_are_moved_into_a_group_with_its_division(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    before = files(root)
    (receipt,) = carry_out(root, journal, GROUP)
    assert receipt.state is ReceiptState.VERIFIED
    assert receipt.effective == f"{DIVIDED} for {root}/srv/pg"
    assert value_of(root, OF_GROUP) == "L2:0=ff;1=ff\nL3DATA:0=ffff0;1=ffff0\nL3CODE:0=fffff;1=fffff"
    assert tasks_of(root, "pgdyno") == [POSTMASTER, BACKEND]
    assert undo(root, journal) == []
    assert files(root) == before


def test_without_cdp_the_others_get_back_what_they_had(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=False)
    put(root, OF_OTHERS, "    MB:0=100;1=100\n    L2:0=ff;1=ff\n    L3:0=fffff;1=fffff")
    carry_out(root, journal, SERVER, OTHERS)
    assert value_of(root, OF_OTHERS) == "MB:0=100;1=100\nL2:0=ff;1=ff\nL3:0=f;1=f"
    put(root, OF_OTHERS, "MB:0=100;1=100\nL2:0=f0;1=ff\nL3:0=f;1=f")
    assert undo(root, journal) == []
    assert value_of(root, OF_OTHERS) == "MB:0=100;1=100\nL2:0=f0;1=ff\nL3:0=fffff;1=fffff"
    assert not (root / f"{RESCTRL}/pgdyno".lstrip("/")).exists()


@pytest.mark.parametrize("cdp", [True, False])
def test_killed_at_any_step_everything_comes_back(root: Path, tmp_path: Path, cdp: bool) -> None:  # noqa: FBT001
    """The kernel's own steps are steps as well.

    A group that is made and not divided yet may be somebody else's: it waits for an rmdir.
    """
    changes = (GROUP,) if cdp else (SERVER, OTHERS)
    FakeResctrl(root).mount(with_cdp=cdp)
    before = files(root)
    place, left = 0, []
    while _is_killed_at(place, root, tmp_path / f"journal-{place}", changes):
        with open_journal(tmp_path / f"journal-{place}") as journal:
            if undo(root, journal):
                assert value_of(root, OF_GROUP) == (ALL if cdp else WHOLE)
                FakeResctrl(root).remove_group(GROUP_PATH)
                left.append(place)
            assert undo(root, journal) == []
            assert journal.read().open == ()
        assert files(root) == before
        place += 1
    assert left == ([2] if cdp else [4])  # right after the group was made
    assert place == (6 if cdp else 11)  # receipt, rehearsal, made, changed, applied, read back; of one or two


def _is_killed_at(place: int, root: Path, directory: Path, changes: tuple[Change, ...]) -> bool:
    """Let an apply be killed at one of its steps; False if it came to its end."""
    steps = KillAt(place)
    make = FakeResctrl.make_group

    def make_group(self: FakeResctrl, path: str) -> None:
        make(self, path)
        steps("made the group")

    with open_journal(directory) as journal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeResctrl, "make_group", make_group)
        try:
            carry_out(root, journal, *changes, steps=steps)
        except KilledError:
            return True
    return False


class KilledError(BaseException):
    """The process was killed: no handler of errors runs."""


class KillAt:
    """Kills at the step of this number."""

    def __init__(self, place: int) -> None:
        self.left = place

    def __call__(self, _step: str) -> None:
        if self.left == 0:
            raise KilledError
        self.left -= 1


def test_a_server_that_has_ended_leaves_an_empty_group_which_is_removed(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    carry_out(root, journal, GROUP)
    (root / f"{RESCTRL}/pgdyno/tasks".lstrip("/")).write_text("")
    assert undo(root, journal) == []
    assert not (root / f"{RESCTRL}/pgdyno".lstrip("/")).exists()


def test_a_server_that_does_not_run_gets_no_group(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    elsewhere = Change(
        "cache_allocation", CACHE_GROUP, OF_GROUP, None, f"{DIVIDED} for /root", Effect.IMMEDIATE
    )
    with pytest.raises(ServerError) as caught:
        carry_out(root, journal, elsewhere)
    assert caught.value.message == "no process of the server in /root was found"
    assert undo(root, journal) == []
    assert not (root / f"{RESCTRL}/pgdyno".lstrip("/")).exists()


def test_the_kernels_own_words_say_why_it_does_not_divide_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    put(root, f"{RESCTRL}/info/last_cmd_status", "mask f7 has non-consecutive 1-bits")
    monkeypatch.setattr("os.write", invalid)
    with pytest.raises(SettingError) as caught:
        writers_of(root)[CACHE_GROUP].write(OF_OTHERS, "L3DATA:0=f7")
    assert str(caught.value) == (
        "the kernel rejects the cache division L3DATA:0=f7\nDETAIL:  mask f7 has non-consecutive 1-bits"
    )


def invalid(_file: int, _content: bytes) -> int:
    raise OSError(errno.EINVAL, "Invalid argument")


def test_what_cannot_be_divided_is_refused_before_anything_is_changed(root: Path, journal: Journal) -> None:
    with pytest.raises(SettingError) as caught:
        carry_out(root, journal, GROUP)
    assert caught.value.detail == "/sys/fs/resctrl is not mounted"
    FakeResctrl(root).mount(with_cdp=True)
    with pytest.raises(SettingError) as caught:
        carry_out(root, journal, MOUNT)
    assert caught.value.message == "/sys/fs/resctrl is already mounted, cdp"
    assert journal.read().open == ()


def test_mounting_and_unmounting(root: Path, journal: Journal) -> None:
    (receipt,) = carry_out(root, journal, MOUNT)
    assert (receipt.state, receipt.effective, receipt.found.value) == (ReceiptState.VERIFIED, "cdp", None)
    assert "L3DATA" in value_of(root, f"{RESCTRL}/schemata")
    assert undo(root, journal) == []
    assert files(root) == {}
    assert journal.read().open == ()


def test_our_own_group_is_to_be_reverted_before_it_is_unmounted(root: Path, journal: Journal) -> None:
    carry_out(root, journal, MOUNT)
    FakeResctrl(root).make_group(GROUP_PATH)
    with pytest.raises(RefusedError) as caught:
        undo(root, journal)
    assert caught.value.message == ("/sys/fs/resctrl is not unmounted: /sys/fs/resctrl/pgdyno still exists")
    assert caught.value.hint == (
        "pgdyno status shows which apply made it; revert that one first with pgdyno revert"
    )
    FakeResctrl(root).remove_group(GROUP_PATH)
    assert undo(root, journal) == []
    assert files(root) == {}


def test_after_a_restart_of_the_machine_there_is_nothing_to_undo(root: Path, journal: Journal) -> None:
    FakeResctrl(root).mount(with_cdp=True)
    carry_out(root, journal, GROUP)
    FakeResctrl(root).unmount()
    put(root, BOOT, "second")
    assert undo(root, journal) == []
    assert journal.read().open == ()
