"""Directories for sockets outside of a scratch directory, left by a pgdyno that was killed."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.orphaned_servers import make_sockets_elsewhere, remove_left_sockets
from pgdyno.postgres.process.workspace import Workspace


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand for /tmp."""
    path = tmp_path / "tmp"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def make_used(scratch: Path) -> Path:
    """Make such a directory, with a socket and a lock file as a server makes them."""
    path = make_sockets_elsewhere(scratch, os.getuid())
    before = Path.cwd()
    os.chdir(path)  # the path may be too long here
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(".s.PGSQL.5432")
    os.chdir(before)
    (path / ".s.PGSQL.5432.lock").touch()
    return path


def test_the_next_pgdyno_removes_what_a_killed_one_has_left(tmp_path: Path, elsewhere: Path) -> None:
    place = Workspace(tmp_path / ("long" * 40), caller())
    if (killed := os.fork()) == 0:
        try:
            with place.scratch() as scratch, place.sockets(scratch) as sockets:
                (sockets / ".s.PGSQL.5432").touch()
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(killed, 0)[1] == 0
    (left,) = elsewhere.iterdir()
    assert (left.stat().st_mode & 0o777, len(list((place.root / "scratch").iterdir()))) == (0o700, 1)
    place.remove_orphans()
    assert [*elsewhere.iterdir(), *(place.root / "scratch").iterdir()] == []


def test_sockets_and_their_lock_files_go_with_it(tmp_path: Path, elsewhere: Path) -> None:
    make_used(tmp_path)
    remove_left_sockets(tmp_path)
    assert [*elsewhere.iterdir(), *tmp_path.glob("*.sockets")] == []


def test_one_that_is_gone_or_not_as_it_was_made_is_forgotten(tmp_path: Path, elsewhere: Path) -> None:
    gone, with_others, opened, link = (make_used(tmp_path) for _ in range(4))
    gone.rename(tmp_path / "of-somebody")
    (with_others / "file").touch()
    opened.chmod(0o755)
    link.rename(tmp_path / "behind-a-link")
    link.symlink_to(tmp_path / "behind-a-link")
    (tmp_path / "a.sockets").write_text(f"{os.getuid()} {tmp_path}/of-somebody\n")
    (tmp_path / "b.sockets").write_text("")
    remove_left_sockets(tmp_path)
    assert not list(tmp_path.glob("*.sockets"))
    assert sorted(elsewhere.iterdir()) == sorted([with_others, opened, link])
    for left in (with_others, opened, tmp_path / "of-somebody", tmp_path / "behind-a-link"):
        assert {".s.PGSQL.5432", ".s.PGSQL.5432.lock"} <= {path.name for path in left.iterdir()}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_one_of_another_user_is_left_to_him(tmp_path: Path) -> None:
    of_account, of_another = make_sockets_elsewhere(tmp_path, 65534), make_sockets_elsewhere(tmp_path, 65534)
    os.chown(of_account, 65534, 65534)
    os.chown(of_another, 65533, 65533)
    remove_left_sockets(tmp_path)
    assert (of_account.exists(), of_another.exists()) == (False, True)
