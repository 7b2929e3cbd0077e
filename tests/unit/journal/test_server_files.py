"""Only postgresql.auto.conf is ever written, in one step, and never through a symbolic link."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.journal.receipts import TARGET

from pgdyno.journal.server_files import ServerFiles
from pgdyno.journal.target import this_machine
from pgdyno.model.errors import DataDirectoryError, StorageError

AUTO_CONF = "postgresql.auto.conf"


def files(tmp_path: Path, content: bytes = b"old\n", mode: int = 0o640) -> ServerFiles:
    path = tmp_path / AUTO_CONF
    path.write_bytes(content)
    path.chmod(mode)
    return ServerFiles(tmp_path)


def test_the_new_file_has_the_owner_and_mode_of_the_old_one(tmp_path: Path) -> None:
    directory = files(tmp_path)
    if os.geteuid() == 0:
        os.chown(tmp_path / AUTO_CONF, 4711, 4712)
    before = (tmp_path / AUTO_CONF).stat()
    assert directory.replace_auto_conf(b"new\n", expected=b"old\n")
    after = (tmp_path / AUTO_CONF).stat()
    assert directory.read_auto_conf() == b"new\n"
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert [path.name for path in tmp_path.iterdir()] == [AUTO_CONF]


def test_what_a_killed_pgdyno_left_beside_it_is_replaced(tmp_path: Path) -> None:
    directory = files(tmp_path)
    (tmp_path / "postgresql.auto.conf.pgdyno").write_bytes(b"half a fi")
    assert directory.replace_auto_conf(b"new\n", expected=b"old\n")
    assert [path.name for path in tmp_path.iterdir()] == [AUTO_CONF]


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / AUTO_CONF).symlink_to(tmp_path / "secret")
    with pytest.raises(StorageError) as caught:
        ServerFiles(tmp_path).read_auto_conf()
    assert caught.value.message == f"could not read {tmp_path / AUTO_CONF}"


def test_a_file_that_cannot_be_replaced_is_still_the_old_one(tmp_path: Path) -> None:
    directory = files(tmp_path)
    (tmp_path / "postgresql.auto.conf.pgdyno").mkdir()
    with pytest.raises(StorageError, match="could not write"):
        directory.replace_auto_conf(b"new\n", expected=b"old\n")
    assert directory.read_auto_conf() == b"old\n"


def test_a_file_that_somebody_has_written_meanwhile_is_theirs(tmp_path: Path) -> None:
    directory = files(tmp_path, b"theirs\n")
    assert directory.replace_auto_conf(b"new\n", expected=b"old\n") is False
    assert directory.read_auto_conf() == b"theirs\n"
    assert [path.name for path in tmp_path.iterdir()] == [AUTO_CONF]


def test_no_file_reads_as_an_empty_one(tmp_path: Path) -> None:
    assert ServerFiles(tmp_path).read_auto_conf() == b""


def cluster(path: Path) -> ServerFiles:
    """A data directory as far as its control file goes."""
    (path / "global").mkdir(parents=True)
    (path / "global/pg_control").write_bytes(int(TARGET.identity).to_bytes(8, sys.byteorder) + bytes(8184))
    return ServerFiles(path)


def test_the_system_identifier_is_in_the_control_file(tmp_path: Path) -> None:
    assert cluster(tmp_path).system_identifier() == "7710499856251902124"


def test_files_are_of_the_server_that_named_them(tmp_path: Path) -> None:
    directory = cluster(tmp_path / "data")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    here = replace(TARGET, machine=this_machine())
    assert directory.is_of(replace(here, data_directory=str(tmp_path / "data")))
    assert directory.is_of(replace(here, data_directory=str(tmp_path / "link")))
    assert directory.is_of(replace(here, data_directory=str(tmp_path / "as a container names it")))
    assert directory.is_of(replace(here, data_directory=None, machine=None))


def test_files_of_a_standby_are_not_those_of_its_primary(tmp_path: Path) -> None:
    """Both have one system identifier."""
    standby, primary = cluster(tmp_path / "standby"), cluster(tmp_path / "primary")
    here = replace(TARGET, machine=this_machine())
    assert not standby.is_of(replace(here, data_directory=str(primary.path)))
    assert not standby.is_of(replace(here, data_directory=str(standby.path), machine="another"))
    assert not standby.is_of(replace(here, data_directory=str(standby.path), identity="1"))
    assert not ServerFiles(tmp_path).is_of(here)


def test_without_a_control_file_it_is_no_data_directory(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="could not read the control file of data directory"):
        ServerFiles(tmp_path).system_identifier()


@pytest.mark.parametrize(
    ("content", "is_there"),
    [
        pytest.param(f"{os.getpid()}\n/data\n", True, id="itself"),
        pytest.param("4194305\n", False, id="above the kernel's limit"),
        pytest.param("", False, id="nobody"),
    ],
)
def test_a_postmaster_is_there_if_its_process_exists(tmp_path: Path, content: str, *, is_there: bool) -> None:
    (tmp_path / "postmaster.pid").write_text(content)  # 4194304 is the highest process id of Linux
    assert ServerFiles(tmp_path).has_postmaster() is is_there


def test_patroni_leaves_its_files_in_the_data_directory(tmp_path: Path) -> None:
    assert ServerFiles(tmp_path).patroni_file() is None
    (tmp_path / "postgresql.base.conf").touch()
    assert ServerFiles(tmp_path).patroni_file() == "postgresql.base.conf"
