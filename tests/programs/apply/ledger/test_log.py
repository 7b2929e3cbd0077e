"""The journal survives being cut off anywhere, and says when it is damaged."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import stat
from pathlib import Path

import pytest
from tests.fix_disk import small_disk
from tests.unit.apply.receipts import receipt

from pgdyno.apply.ledger.log import open_journal, read_journal
from pgdyno.base.errors import LockHeldError, StorageError
from pgdyno.host.files.lock import exclusive_lock
from pgdyno.model.plans.journal import Receipt, ReceiptState
from pgdyno.postgres.process.workspace import JOURNAL_FILE

EARLIER = Path(__file__).parents[3] / "fixtures/journals"


def written(directory: Path) -> bytes:
    """Write a journal of two receipts, one applied and verified, and return its bytes."""
    with open_journal(directory) as journal:
        first, second = receipt(number=1), receipt("jit", "off", number=2)
        journal.add(first)
        journal.add(second)
        applied = journal.advance(first, ReceiptState.APPLIED)
        journal.advance(applied, ReceiptState.VERIFIED, effective="8192")
    return (directory / JOURNAL_FILE).read_bytes()


def states(receipts: tuple[Receipt, ...]) -> dict[str, ReceiptState]:
    return {one.key: one.state for one in receipts}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    written(tmp_path)
    contents = read_journal(tmp_path)
    assert contents.damage == ()
    assert contents.open[1] == receipt("jit", "off", number=2)
    assert contents.open[0].state is ReceiptState.VERIFIED
    assert contents.open[0].effective == "8192"


def test_a_journal_of_an_earlier_version_is_read() -> None:
    """By 9c244304: a revert killed before it removed a file, an apply killed while it restarted a server."""
    contents = read_journal(EARLIER)
    assert (contents.damage, contents.is_torn) == ((), True)
    assert contents.restarting == {"20261130T184526Z-e8bc81"}
    scheduler, file = "/sys/block/vda/queue/scheduler", "/etc/sysctl.d/60-pgdyno.conf"
    assert [(one.key, one.found.value, one.state, one.effective) for one in contents.open] == [
        ("account pgdyno", None, "verified", "system account, home /nonexistent, shell /usr/sbin/nologin"),
        (scheduler, "mq-deadline", "verified", "none"),
        (file, None, "verified", "sha256 9c39c0085973"),
        ("work_mem", "5MB", "verified", "49152"),
        ("max_connections", None, "applied", None),
    ]
    assert [one.key for one in contents.open if one.is_being_restored] == [file]
    assert [one.restart_command for one in contents.open] == [()] * 5  # not recorded then
    depth = contents.open[1].found.state["/sys/block/vda/queue/nr_requests"]
    assert (depth, contents.open[1].server) == ("256", contents.open[3].target)


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    contents = read_journal(tmp_path / "nowhere")
    assert (contents.receipts, contents.damage) == ((), ())


def test_a_reverted_and_a_released_receipt_are_not_open(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        for number, state in enumerate((ReceiptState.REVERTED, ReceiptState.RELEASED), start=1):
            one = receipt(number=number)
            journal.add(one)
            journal.advance(one, state)
    assert read_journal(tmp_path).open == ()
    assert len(read_journal(tmp_path).receipts) == 2


def test_a_journal_cut_off_anywhere_is_a_shorter_journal(tmp_path: Path) -> None:
    """Every entry whose line is complete counts, no other one, and nothing of it is damage."""
    whole = written(tmp_path)
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole) + 1):
        (tmp_path / JOURNAL_FILE).write_bytes(whole[:length])
        lines = sum(end <= length for end in ends)
        contents = read_journal(tmp_path)
        assert contents.damage == ()
        assert len(contents.receipts) == min(lines, 2)
        expected = {3: ReceiptState.APPLIED, 4: ReceiptState.VERIFIED}.get(lines, ReceiptState.WRITTEN)
        assert [one.state for one in contents.receipts][:1] in ([], [expected])


@pytest.mark.parametrize("cut", [1, 10, 100, 200])
def test_writing_goes_on_after_a_line_that_was_cut_off(tmp_path: Path, cut: int) -> None:
    whole = written(tmp_path)
    torn = whole[:-cut]
    (tmp_path / JOURNAL_FILE).write_bytes(torn)
    before = states(read_journal(tmp_path).receipts)
    with open_journal(tmp_path) as journal:
        assert states(journal.read().receipts) == before
        journal.add(receipt("work_mem", "9MB", number=3))
    contents = read_journal(tmp_path)
    assert contents.damage == ()
    assert [one.id[-2:] for one in contents.receipts] == ["01", "02", "03"]
    assert (tmp_path / JOURNAL_FILE).read_bytes().startswith(torn)


def test_a_line_cut_off_while_the_journal_is_open_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    """As when a second Ctrl-C interrupts the removal of what the first one has interrupted."""
    written(tmp_path)
    with open_journal(tmp_path) as journal:
        with (tmp_path / JOURNAL_FILE).open("ab") as file:
            file.write(b'{"sha256": "12')
        journal.add(receipt("work_mem", "9MB", number=3))
    contents = read_journal(tmp_path)
    assert (contents.damage, contents.is_torn) == ((), False)
    assert [one.id[-2:] for one in contents.receipts] == ["01", "02", "03"]


def test_a_torn_journal_opens_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torn = written(tmp_path)[:-10]
    (tmp_path / JOURNAL_FILE).write_bytes(torn)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with open_journal(tmp_path) as journal:
            assert len(journal.read().receipts) == 2
            with pytest.raises(StorageError, match="could not write the journal"):
                journal.add(receipt("work_mem", "9MB", number=3))
    assert (tmp_path / JOURNAL_FILE).read_bytes() == torn


@pytest.mark.parametrize("seals", [1, 2, 3])
def test_a_crash_may_cut_off_the_end_that_a_cut_off_line_is_given(tmp_path: Path, seals: int) -> None:
    """As when a process is killed while it mends what another killed one has left, and so on."""
    whole = written(tmp_path)
    content = whole[:-10]
    for _ in range(seals):
        (tmp_path / JOURNAL_FILE).write_bytes(content)
        with open_journal(tmp_path):
            content = (tmp_path / JOURNAL_FILE).read_bytes()[:-20]
    (tmp_path / JOURNAL_FILE).write_bytes(content)
    with open_journal(tmp_path) as journal:
        journal.add(receipt("work_mem", "9MB", number=3))
    contents = read_journal(tmp_path)
    assert contents.damage == ()
    assert [one.id[-2:] for one in contents.receipts] == ["01", "02", "03"]


def test_two_lines_that_cannot_be_read_are_damage_if_nobody_cut_them_off(tmp_path: Path) -> None:
    whole = written(tmp_path)
    (tmp_path / JOURNAL_FILE).write_bytes(b"half\nhalf\n" + whole + b"half\n")
    assert read_journal(tmp_path).damage == (
        "line 1 of the journal cannot be read",
        "line 2 of the journal cannot be read",
        "line 7 of the journal cannot be read",
    )


def test_a_line_changed_in_the_middle_is_damage_and_not_a_wrong_value(tmp_path: Path) -> None:
    whole = written(tmp_path)
    (tmp_path / JOURNAL_FILE).write_bytes(whole.replace(b'"value": "off"', b'"value": "on!"', 1))
    contents = read_journal(tmp_path)
    assert contents.damage == ("line 2 of the journal cannot be read",)
    assert [one.key for one in contents.open] == ["work_mem"]


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b'{"entry": 1, "sha256": 2}', b"\xff\xfe", b"null"])
def test_a_line_that_is_no_entry_is_damage(tmp_path: Path, line: bytes) -> None:
    whole = written(tmp_path)
    (tmp_path / JOURNAL_FILE).write_bytes(line + b"\n" + whole)
    assert read_journal(tmp_path).damage == ("line 1 of the journal cannot be read",)


def test_states_of_a_receipt_that_is_lost_are_damage_too(tmp_path: Path) -> None:
    lines = written(tmp_path).splitlines(keepends=True)
    (tmp_path / JOURNAL_FILE).write_bytes(b"".join(lines[1:]))
    damage = read_journal(tmp_path).damage
    assert [line.split(":")[0] for line in damage] == [
        "line 2 of the journal is invalid",
        "line 3 of the journal is invalid",
    ]


def test_a_journal_of_a_newer_pgdyno_is_not_guessed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr("pgdyno.apply.ledger.log._FORMAT", 2)
        written(tmp_path)
    with pytest.raises(StorageError) as caught:
        read_journal(tmp_path)
    assert caught.value.message == "the journal has format 2, but this pgdyno only supports format 1"


def test_nobody_else_may_read_the_journal(tmp_path: Path) -> None:
    directory = tmp_path / "state" / "journal"
    written(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / JOURNAL_FILE).stat().st_mode) == 0o600


def test_every_line_is_json_and_only_ever_appended(tmp_path: Path) -> None:
    before = written(tmp_path)
    with open_journal(tmp_path) as journal:
        journal.advance(receipt("jit", "off", number=2), ReceiptState.REVERTED)
    after = (tmp_path / JOURNAL_FILE).read_bytes()
    assert after.startswith(before)
    assert all(json.loads(line)["entry"]["format"] == 1 for line in after.splitlines())


@pytest.mark.root
def test_a_disk_that_fills_up_is_an_error_and_the_journal_goes_on_when_there_is_room_again() -> None:
    with small_disk() as disk:
        directory = disk.directory / "journal"
        with open_journal(directory) as journal:
            journal.add(receipt(number=1))
            disk.fill()
            before = (directory / JOURNAL_FILE).read_bytes()
            for _ in range(2):
                with pytest.raises(StorageError) as caught:
                    journal.add(receipt("jit", "x" * 5000, number=2))
                assert (directory / JOURNAL_FILE).read_bytes() == before
            disk.empty()
            journal.add(receipt("jit", "off", number=3))
        contents = read_journal(directory)
        assert caught.value.message == f"could not write the journal in {directory}"
        assert caught.value.detail == "No space left on device"
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("nothing is changed without a receipt: free disk space")
        assert (contents.damage, [one.id[-2:] for one in contents.receipts]) == ((), ["01", "03"])


def test_of_several_receipts_all_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_journal(tmp_path) as journal:
        journal.add(receipt(number=1), receipt("jit", "off", number=2))
        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(StorageError):
            journal.add(receipt("fsync", "on", number=3), receipt("ssl", "on", number=4))
    assert [one.key for one in read_journal(tmp_path).receipts] == ["work_mem", "jit"]


@pytest.mark.root
def test_on_a_full_disk_a_journal_opens_for_a_revert_and_takes_no_receipt() -> None:
    with small_disk() as disk:
        disk.fill()
        with open_journal(disk.directory / "journal") as journal:
            with pytest.raises(StorageError) as caught:
                journal.add(receipt())
            assert journal.read().receipts == ()
    assert caught.value.detail == "No space left on device"


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_half_a_line_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    write = os.write
    with open_journal(tmp_path) as journal:
        journal.add(receipt(number=1))
        before = (tmp_path / JOURNAL_FILE).read_bytes()

        def half(file: int, content: bytes) -> int:
            write(file, content[: len(content) // 2])
            raise failure

        with monkeypatch.context() as broken:
            broken.setattr("pgdyno.apply.ledger.log.os.write", half)
            with pytest.raises((StorageError, KeyboardInterrupt)):
                journal.add(receipt("jit", "off", number=2))
        assert (tmp_path / JOURNAL_FILE).read_bytes() == before
        journal.add(receipt("jit", "off", number=3))
    assert read_journal(tmp_path).damage == ()
    assert len(read_journal(tmp_path).receipts) == 2


def test_a_journal_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    with open_journal(tmp_path), pytest.raises(LockHeldError) as caught, open_journal(tmp_path):
        pytest.fail("the second one got it")
    assert caught.value.message == "another pgdyno process is making changes on this host"
    assert caught.value.detail == f"process {os.getpid()} holds {tmp_path / 'lock'}"
    with open_journal(tmp_path):
        pass


def test_a_full_disk_does_not_keep_anybody_from_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # nothing can be written
    try:
        with exclusive_lock(path), pytest.raises(LockHeldError) as caught, exclusive_lock(path):
            pytest.fail("the second one got it")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.detail == f"a process that has not yet written its process id holds {path}"


def test_a_restart_counts_as_running_until_it_is_known_to_have_ended(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.restarting("one")
        journal.restarting("two")
        journal.restarted("one")
    assert read_journal(tmp_path).restarting == {"two"}


def test_a_value_set_in_passing_belongs_to_its_receipt(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.add(receipt())
        assert journal.intend(receipt(), "512").interims == ("512",)
    assert read_journal(tmp_path).receipts[0].interims == ("512",)


@pytest.mark.timeout(60)  # what grows with the square of their number takes several minutes
def test_many_values_in_passing_are_read_in_a_moment(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.add(receipt())
        journal.intend(receipt(), "512")
    first, passing = (tmp_path / JOURNAL_FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / JOURNAL_FILE).write_bytes(first + passing * 300_000)
    assert read_journal(tmp_path).receipts[0].interims == ("512",) * 300_000


def test_a_receipt_knows_that_its_value_is_being_put_back(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.add(receipt())
        assert journal.restoring(receipt()).is_being_restored
    assert read_journal(tmp_path).receipts[0].is_being_restored


def test_a_line_that_nests_too_deep_is_damage(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b'{"sha256": "", "entry": ' + b"[" * 100_000 + b"\n")
    assert read_journal(tmp_path).damage == ("line 1 of the journal cannot be read",)
