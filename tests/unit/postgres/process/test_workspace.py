"""Directories of pgdyno's storage, as the servers' account finds them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.workspace import Workspace

OTHER = Account("other", os.getuid(), os.getgid(), is_other=True)


@pytest.fixture
def _private_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("_private_umask")
def test_the_servers_account_gets_through_whatever_the_umask(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "above" / "pgdyno", OTHER)
    assert mode(place.datasets()) == 0o711
    assert mode(place.experiments()) == 0o700
    assert (mode(tmp_path / "above"), mode(place.root)) == (0o755, 0o755)


@pytest.mark.usefixtures("_private_umask")
def test_what_a_user_keeps_to_himself_stays_so(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "pgdyno", Account("caller", os.getuid(), os.getgid(), is_other=False))
    place.datasets()
    assert mode(place.root) == 0o700


@pytest.mark.usefixtures("_private_umask")
def test_directories_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "pgdyno").mkdir(mode=0o700)
    Workspace(tmp_path / "pgdyno", OTHER).datasets()
    assert mode(tmp_path / "pgdyno") == 0o700
