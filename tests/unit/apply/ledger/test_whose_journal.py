"""A journal is used if nobody but the caller and root can write it, whatever lay there when it was asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.apply.ledger.log import open_journal
from pgdyno.base.errors import StorageError
from pgdyno.postgres.process.workspace import JOURNAL_FILE


def test_one_that_everybody_can_write_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_FILE).touch()
    (tmp_path / JOURNAL_FILE).chmod(0o602)
    with pytest.raises(StorageError) as caught, open_journal(tmp_path):
        pass
    assert caught.value.message == f"the journal in {tmp_path} cannot be trusted"


@pytest.mark.root
def test_one_of_another_user_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_FILE).touch(mode=0o600)
    os.chown(tmp_path / JOURNAL_FILE, 65534, 65534)
    with pytest.raises(StorageError) as caught, open_journal(tmp_path):
        pass
    assert caught.value.detail == (
        "other users can write it, and its values would be restored with your privileges"
    )


def test_what_is_read_is_the_file_that_is_held(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.restarting("of this file")
        (tmp_path / JOURNAL_FILE).rename(tmp_path / "former")
        (tmp_path / JOURNAL_FILE).touch()
        assert journal.read().restarting == {"of this file"}
