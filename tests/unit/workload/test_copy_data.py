"""A copy that takes the place of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import StorageError
from pgdyno.workload.copy_data import replacing


def test_a_new_copy_takes_the_place_of_one_that_is_there_or_is_not(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with replacing(tmp_path / "w.dump"):
            assert not (tmp_path / "w.dump").exists()
            (tmp_path / "w.dump").write_text(text)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("w.dump", "second")]


def test_a_copy_that_fails_leaves_the_former_one(tmp_path: Path) -> None:
    (tmp_path / "w.dump").write_text("first")
    with pytest.raises(StorageError), replacing(tmp_path / "w.dump"):
        raise StorageError("the disk is full")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("w.dump", "first")]
