"""Only postgresql.auto.conf is ever written, in one step, and never through a symbolic link."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.apply.data_directory import data_directory, give_to_owner
from tests.unit.apply.receipts import TARGET

from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.target import this_machine
from pgdyno.base.errors import DataDirectoryError, StorageError
from pgdyno.host.files.directory import Directory

AUTO_CONF = "postgresql.auto.conf"


def files(tmp_path: Path, content: bytes = b"old\n", mode: int = 0o640) -> ServerFiles:
    data_directory(tmp_path, content)
    (tmp_path / AUTO_CONF).chmod(mode)
    return ServerFiles(tmp_path)


def others(path: Path) -> list[str]:
    """What lies in a data directory besides its control file."""
    return [one.name for one in path.iterdir() if one.name != "global"]


def test_the_new_file_has_the_owner_and_mode_of_the_old_one(tmp_path: Path) -> None:
    directory = files(tmp_path)
    before = (tmp_path / AUTO_CONF).stat()
    assert directory.replace_auto_conf(b"new\n", expected=b"old\n")
    after = (tmp_path / AUTO_CONF).stat()
    assert directory.read_auto_conf() == b"new\n"
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert others(tmp_path) == [AUTO_CONF]


def test_what_a_killed_pgdyno_left_beside_it_is_replaced(tmp_path: Path) -> None:
    directory = files(tmp_path)
    (tmp_path / "postgresql.auto.conf.pgdyno").write_bytes(b"half a fi")
    assert directory.replace_auto_conf(b"new\n", expected=b"old\n")
    assert others(tmp_path) == [AUTO_CONF]


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    data_directory(tmp_path)
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
    assert others(tmp_path) == [AUTO_CONF]


def test_no_file_reads_as_an_empty_one(tmp_path: Path) -> None:
    assert cluster(tmp_path).read_auto_conf() == b""


def cluster(path: Path) -> ServerFiles:
    """A data directory as far as its control file goes."""
    return ServerFiles(data_directory(path))


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
    give_to_owner(tmp_path)
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
    assert cluster(tmp_path).has_postmaster() is is_there


def test_patroni_leaves_its_files_in_the_data_directory(tmp_path: Path) -> None:
    assert cluster(tmp_path).patroni_file() is None
    (tmp_path / "postgresql.base.conf").touch()
    assert ServerFiles(tmp_path).patroni_file() == "postgresql.base.conf"


READS: dict[str, Callable[[ServerFiles], object]] = {
    AUTO_CONF: ServerFiles.read_auto_conf,
    "postmaster.pid": ServerFiles.has_postmaster,
    "global/pg_control": ServerFiles.system_identifier,
}


@pytest.mark.timeout(60)  # none of these may keep root waiting
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("kind", ["fifo", "link", "another user's"])
def test_nothing_but_a_plain_file_of_the_servers_user_is_read(tmp_path: Path, name: str, kind: str) -> None:
    directory, path = cluster(tmp_path), tmp_path / name
    path.unlink(missing_ok=True)
    if kind == "another user's":
        if os.geteuid() != 0:
            pytest.skip("giving a file away takes root")
        path.touch()
    else:
        os.mkfifo(path) if kind == "fifo" else path.symlink_to("/dev/zero")
        give_to_owner(path)
    with pytest.raises((StorageError, DataDirectoryError)) as caught:
        READS[name](directory)
    assert caught.value.detail == {
        "fifo": f'"{path.name}" is not a regular file',
        "link": f'"{path.name}" is a symbolic link',
        "another user's": f'"{path.name}" belongs to user 0, but its directory belongs to user 4711',
    }.get(kind)


@pytest.mark.parametrize("name", [AUTO_CONF, "postmaster.pid"])
def test_no_more_is_read_of_a_file_than_such_a_file_can_have(tmp_path: Path, name: str) -> None:
    directory = cluster(tmp_path)
    (tmp_path / name).touch()
    os.truncate(give_to_owner(tmp_path / name), 1 << 40)
    with pytest.raises((StorageError, DataDirectoryError)) as caught:
        READS[name](directory)
    assert caught.value.detail == f'"{name}" is larger than the limit of 1048576 bytes'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is stopped by it")
def test_a_directory_of_roots_is_no_data_directory(tmp_path: Path) -> None:
    directory = files(tmp_path)
    os.chown(tmp_path, 0, 0)
    with pytest.raises(DataDirectoryError) as caught:
        directory.replace_auto_conf(b"new\n", expected=b"old\n")
    assert str(caught.value) == (
        f'data directory "{tmp_path}" belongs to root\n'
        "DETAIL:  PostgreSQL does not run as root, and rejects a directory of another user\n"
        "HINT:  name the server's actual data directory, which belongs to the server's user"
    )
    assert (tmp_path / AUTO_CONF).read_bytes() == b"old\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away takes root")
@pytest.mark.parametrize("name", ["global", "global/pg_control"])
def test_the_control_file_proves_whose_the_directory_is(tmp_path: Path, name: str) -> None:
    directory = files(tmp_path)
    os.chown(tmp_path / name, 0, 0)
    for use in (ServerFiles.read_auto_conf, ServerFiles.patroni_file, ServerFiles.owner):
        with pytest.raises(DataDirectoryError) as caught:
            use(directory)
        assert caught.value.message == f'could not read the control file of data directory "{tmp_path}"'
        why = f'"{Path(name).name}" belongs to user 0, but its directory belongs to user 4711'
        assert caught.value.detail == why
    assert not directory.is_of(replace(TARGET, machine=this_machine(), data_directory=str(tmp_path)))


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away takes root")
def test_a_file_that_is_not_the_servers_users_is_not_replaced(tmp_path: Path) -> None:
    directory = files(tmp_path)
    os.chown(tmp_path / AUTO_CONF, 0, 0)
    with pytest.raises(StorageError) as caught:
        directory.replace_auto_conf(b"new\n", expected=b"old\n")
    assert caught.value.message == f"could not write {tmp_path / AUTO_CONF}"
    assert caught.value.hint == "change its owner to user 4711, as the server requires"
    assert others(tmp_path) == [AUTO_CONF]


@pytest.mark.parametrize("when", ["remove", "create", "rename"])
def test_a_directory_that_is_exchanged_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Its owner puts a link to another directory in its place, at each step."""
    data, victim = tmp_path / "data", tmp_path / "victim"
    victim.mkdir()
    directory = ServerFiles(data_directory(data, b"old\n"))
    step = getattr(Directory, when)

    def exchanged(*arguments: object) -> None:
        if not data.is_symlink():
            data.rename(tmp_path / "away")
            data.symlink_to(victim)
        step(*arguments)

    monkeypatch.setattr(Directory, when, exchanged)
    assert directory.replace_auto_conf(b"new\n", expected=b"old\n")
    assert list(victim.iterdir()) == []
    assert (tmp_path / "away" / AUTO_CONF).read_bytes() == b"new\n"


@pytest.mark.parametrize("content", ["9" * 5000, "-1\n", "0\n", "12345678\n", "x\n"])
def test_a_pid_file_that_names_no_process_names_no_postmaster(tmp_path: Path, content: str) -> None:
    (tmp_path / "postmaster.pid").write_text(content)
    assert not cluster(tmp_path).has_postmaster()


@pytest.mark.parametrize(
    ("lines", "is_it"),
    [
        pytest.param("1\n/data\n1790000000\n5432\n", True, id="itself"),
        pytest.param("1\n/data\n1790000000\n5433\n", False, id="another port"),
        pytest.param("1\n/data\n1790000100\n5432\n", False, id="started later"),
        pytest.param("1\n/data\nnever\n5432\n", False, id="no time"),
        pytest.param("1\n/data\n", False, id="starting"),
    ],
)
def test_a_running_server_is_known_by_its_pid_file(tmp_path: Path, lines: str, *, is_it: bool) -> None:
    (tmp_path / "postmaster.pid").write_text(lines)
    directory = cluster(tmp_path)
    assert directory.is_running_as(TARGET.identity, "5432", 1_790_000_000.4) is is_it
    assert not directory.is_running_as("1", "5432", 1_790_000_000.4)
