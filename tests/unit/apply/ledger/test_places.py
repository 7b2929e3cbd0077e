"""A second journal on this host is reported."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.apply.receipts import receipt

from pgdyno.apply.ledger.log import open_journal, read_journal
from pgdyno.apply.ledger.places import candidate_directories, other_journals
from pgdyno.model.plans.journal import OtherJournal, ReceiptState
from pgdyno.postgres.process.workspace import JOURNAL_FILE


def test_another_journal_with_open_receipts_is_reported(tmp_path: Path) -> None:
    with open_journal(tmp_path / "theirs") as journal:
        journal.add(receipt())
    found = other_journals(tmp_path / "ours", [tmp_path / "ours", tmp_path / "theirs", tmp_path / "none"])
    undoing = f"env PGDYNO_HOME={tmp_path} pgdyno revert"  # the address is a directory without a port
    assert found == (OtherJournal(str(tmp_path / "theirs"), 1, undoing),)


def test_a_journal_that_is_done_with_is_not_worth_a_word(tmp_path: Path) -> None:
    with open_journal(tmp_path / "theirs") as journal:
        journal.add(receipt())
        journal.advance(receipt(), ReceiptState.REVERTED)
    assert other_journals(tmp_path / "ours", [tmp_path / "theirs"]) == ()


def test_our_own_journal_is_not_another_one(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.add(receipt())
    assert other_journals(tmp_path, [tmp_path]) == ()


def test_a_journal_that_cannot_be_read_may_hold_changes(tmp_path: Path) -> None:
    (tmp_path / "theirs" / JOURNAL_FILE).mkdir(parents=True)
    assert other_journals(tmp_path / "ours", [tmp_path / "theirs"]) == (
        OtherJournal(str(tmp_path / "theirs"), None),
    )


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no space


@pytest.mark.parametrize("make", [_fifo, _link, _huge])
def test_what_another_user_puts_in_place_of_a_journal_keeps_nobody(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    make(theirs / JOURNAL_FILE)
    assert other_journals(tmp_path / "ours", [theirs]) == (OtherJournal(str(theirs), None),)


def test_a_line_of_nothing_but_brackets_is_damage(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.add(receipt())
        with (tmp_path / JOURNAL_FILE).open("ab") as file:
            file.write(b"[" * 100_000 + b"\n")
        journal.add(receipt(number=2))
    contents = read_journal(tmp_path)
    assert contents.damage == ("line 2 of the journal cannot be read",)
    assert len(contents.open) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_journal_that_is_closed_to_us_may_hold_changes(tmp_path: Path) -> None:
    with open_journal(tmp_path / "theirs"):
        pass
    (tmp_path / "theirs").chmod(0)
    assert other_journals(tmp_path / "ours", [tmp_path / "theirs"]) == (
        OtherJournal(str(tmp_path / "theirs"), None),
    )
    (tmp_path / "theirs").chmod(0o700)


def test_the_systems_journal_is_looked_at_first() -> None:
    assert candidate_directories()[0] == Path("/var/lib/pgdyno/journal")


def test_this_users_journals_are_looked_at_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert candidate_directories()[1:3] == (tmp_path / "home/journal", tmp_path / "state/pgdyno/journal")


def test_without_an_environment_this_users_journal_is_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGDYNO_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ann")
    assert candidate_directories()[1] == Path("/home/ann/.local/state/pgdyno/journal")
