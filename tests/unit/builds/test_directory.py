"""The directory of a build that another account has begun."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.builds.directory import BuildDirectory
from pgdyno.postgres.process.account import Account


@pytest.mark.parametrize(("uid", "is_kept"), [(os.geteuid(), True), (os.geteuid() + 1, False)])
def test_a_build_goes_on_only_with_what_its_own_account_has_made(
    tmp_path: Path,
    uid: int,
    is_kept: bool,  # noqa: FBT001
) -> None:
    root = tmp_path / "built-00000000000a"
    (root / "source").mkdir(parents=True)
    (root / "done").write_text("unpack\n")
    BuildDirectory(root, tmp_path / "prefix", Account("any", uid, uid, is_other=False)).forget_others()
    assert (root / "done").exists() is root.exists() is is_kept


def test_a_build_that_nobody_has_begun_is_none_of_others(tmp_path: Path) -> None:
    root = tmp_path / "built-00000000000a"
    root.mkdir()
    BuildDirectory(root, tmp_path / "prefix", Account("any", 4711, 4711, is_other=False)).forget_others()
    assert root.is_dir()
