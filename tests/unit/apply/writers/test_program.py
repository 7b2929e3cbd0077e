"""What chooses a server's programs, in a directory of the server's user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.unit.apply.data_directory import GROUP, OWNER, give_to_owner

from pgdyno.apply.writers.program import PgCtlOptionsWriter, ProgramLinkWriter
from pgdyno.base.errors import PrivilegeError, StorageError
from pgdyno.base.ports import Found

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")
TEXT = "# Debian's\npg_ctl_options = '-t 60'\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A cluster's configuration directory, with a link to the programs in it."""
    directory = tmp_path / "main"
    directory.mkdir()
    (directory / "pg_ctl.conf").write_text(TEXT)
    (directory / "pg_ctl.conf").chmod(0o640)
    (directory / "current").symlink_to("/usr/lib/a")
    for path in (directory, *directory.iterdir()):
        give_to_owner(path)
    return directory


def test_options_are_written_and_put_back(place: Path) -> None:
    writer, path = PgCtlOptionsWriter(None), place / "pg_ctl.conf"
    before = path.stat()
    writer.check(str(path))
    writer.write(str(path), "-t 90")
    assert path.read_text() == "# Debian's\npg_ctl_options = '-t 90'\n"
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    (place / "pg_ctl.conf.pgdyno-new").touch()
    writer.restore(str(path), Found("-t 60", {}))
    assert path.read_text() == TEXT
    assert sorted(one.name for one in place.iterdir()) == ["current", "pg_ctl.conf"]


@pytest.mark.timeout(60)
def test_what_is_no_plain_file_has_no_options(place: Path) -> None:
    path = place / "pg_ctl.conf"
    path.unlink()
    os.mkfifo(path)
    give_to_owner(path)
    with pytest.raises(PrivilegeError) as caught:
        PgCtlOptionsWriter(None).check(str(path))
    assert str(caught.value) == f'could not read {path}\nDETAIL:  "pg_ctl.conf" is not a regular file'
    with pytest.raises(StorageError, match=f"could not write {path}"):
        PgCtlOptionsWriter(None).write(str(path), "-t 90")


@needs_root
def test_a_file_that_is_not_the_users_is_refused(place: Path) -> None:
    path = place / "pg_ctl.conf"
    os.chown(path, 0, 0)
    path.chmod(0o644)
    with pytest.raises(PrivilegeError) as caught:
        PgCtlOptionsWriter(None).check(str(path))
    assert caught.value.detail == '"pg_ctl.conf" belongs to user 0, but its directory belongs to user 4711'


@needs_root
def test_a_file_in_a_directory_of_roots_keeps_its_owner(place: Path) -> None:
    os.chown(place, 0, 0)
    PgCtlOptionsWriter(None).write(str(place / "pg_ctl.conf"), "-t 90")
    status = (place / "pg_ctl.conf").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (OWNER, GROUP, 0o640)


@needs_root
def test_a_link_to_a_directory_of_roots_leads_nowhere(tmp_path: Path, place: Path) -> None:
    """Its owner has put it in the place of the configuration directory."""
    victim = tmp_path / "victim"
    place.rename(victim)
    os.chown(victim, 0, 0)
    place.symlink_to(victim)
    os.lchown(place, OWNER, GROUP)
    why = f"the symbolic link {place} belongs to user 4711, but it leads {place} to a directory of user 0"
    for writer, name in ((PgCtlOptionsWriter(None), "pg_ctl.conf"), (ProgramLinkWriter(None), "current")):
        with pytest.raises((PrivilegeError, StorageError)) as caught:
            writer.write(str(place / name), "/usr/lib/b")
        assert caught.value.detail == why
    assert (victim / "pg_ctl.conf").read_text() == TEXT
    assert (victim / "current").readlink() == Path("/usr/lib/a")


@pytest.mark.parametrize("owner", [OWNER, 4713])
def test_a_link_is_written_and_put_back_with_its_owner(place: Path, owner: int) -> None:
    writer, path = ProgramLinkWriter(None), place / "current"
    if os.geteuid() == 0:
        os.lchown(path, owner, owner)
    before = path.lstat()
    writer.check(str(path))
    writer.write(str(path), "/usr/lib/b")
    assert path.readlink() == Path("/usr/lib/b")
    writer.restore(str(path), Found("/usr/lib/a", {}))
    assert path.readlink() == Path("/usr/lib/a")
    assert (path.lstat().st_uid, path.lstat().st_gid) == (before.st_uid, before.st_gid)
