from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.base.errors import DataDirectoryError, PrivilegeError
from pgdyno.base.facts import Unknown
from pgdyno.postgres.inspection.data_directory import read_data_directory
from pgdyno.postgres.process.account import acting_as
from pgdyno.postgres.server import Postmaster


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    (tmp_path / "PG_VERSION").write_text("18\n")
    (tmp_path / "postgresql.conf").write_text("work_mem = 4MB\n")
    (tmp_path / "postgresql.auto.conf").write_text("# Do not edit\nwork_mem = '8MB'\n")
    return tmp_path


def write_pid_file(directory: Path, pid: int) -> None:
    lines = [str(pid), str(directory), "1700000000", "5433", "/run/postgresql", "localhost", "  5 6", "ready"]
    (directory / "postmaster.pid").write_text("\n".join(lines) + "\n")


def reason_of(value: object) -> str:
    assert isinstance(value, Unknown)
    return value.reason


def test_files_tell_version_owner_and_settings(data_directory: Path) -> None:
    found = read_data_directory(data_directory)
    assert found.major == 18
    assert found.owner == ("root" if os.geteuid() == 0 else found.owner)
    assert [(setting.name, setting.value, setting.line) for setting in found.settings.or_else(())] == [
        ("work_mem", "4MB", 1),
        ("work_mem", "8MB", 2),
    ]
    assert reason_of(found.postmaster.value) == "not running: there is no postmaster.pid"


def test_a_configuration_kept_elsewhere_is_said(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("15\n")
    assert reason_of(read_data_directory(tmp_path).settings.value) == (
        "the configuration is kept elsewhere, e.g. in /etc/postgresql"
    )


def test_an_include_that_is_missing_is_said(data_directory: Path) -> None:
    (data_directory / "postgresql.conf").write_text("include 'gone.conf'\n")
    settings = read_data_directory(data_directory).settings
    assert reason_of(settings.value) == f"{data_directory}/gone.conf: No such file or directory"


def test_a_process_that_ended_is_not_running(data_directory: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    write_pid_file(data_directory, ended.pid)
    assert reason_of(read_data_directory(data_directory).postmaster.value) == (
        f"not running: postmaster.pid names process {ended.pid}, which is not PostgreSQL"
    )


def test_a_pid_that_somebody_else_has_by_now_is_not_running(data_directory: Path) -> None:
    write_pid_file(data_directory, os.getpid())
    assert "which is not PostgreSQL" in reason_of(read_data_directory(data_directory).postmaster.value)


def test_a_running_postmaster_tells_its_socket_and_port(
    data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pid_file(data_directory, os.getpid())
    monkeypatch.setattr(
        "pgdyno.postgres.inspection.data_directory._is_running", lambda pid: pid == os.getpid()
    )
    assert read_data_directory(data_directory).postmaster.value == Postmaster(
        os.getpid(), 5433, "/run/postgresql", "localhost"
    )


def test_a_pid_file_that_is_being_written_is_said(data_directory: Path) -> None:
    (data_directory / "postmaster.pid").write_text("123\n")
    assert reason_of(read_data_directory(data_directory).postmaster.value) == (
        "starting, or stopped while starting: postmaster.pid is incomplete"
    )


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError) as caught:
        read_data_directory(tmp_path / "nosuch")
    assert caught.value.message == f'"{tmp_path}/nosuch" is not a data directory'
    assert caught.value.detail == "there is no such directory"


def test_a_directory_without_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError) as caught:
        read_data_directory(tmp_path)
    assert caught.value.detail == "it has no file PG_VERSION"


def test_a_version_that_is_no_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(DataDirectoryError, match=r'its PG_VERSION contains "9\.6"'):
        read_data_directory(tmp_path)


def test_files_closed_to_us_are_a_privilege_error(
    data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pgdyno.postgres.inspection.data_directory.read_regular_file", closed)
    with pytest.raises(PrivilegeError) as caught:
        read_data_directory(data_directory)
    assert caught.value.message == (
        f'the owner of data directory "{data_directory}", whose rights root uses, cannot read its files'
        if os.geteuid() == 0
        else f'the files of data directory "{data_directory}" are not readable by this user'
    )
    assert caught.value.detail == f"{data_directory}/PG_VERSION: Permission denied"


@pytest.mark.parametrize("version", ["9" * 5_000, "9.6", "\xff", "\u0664"])
def test_a_version_that_is_none_is_shown_in_part(data_directory: Path, version: str) -> None:
    (data_directory / "PG_VERSION").write_text(version, encoding="utf-8")
    with pytest.raises(DataDirectoryError) as caught:
        read_data_directory(data_directory)
    assert caught.value.detail == f'its PG_VERSION contains "{version[:40]}"'


def test_a_version_in_another_encoding_is_refused(data_directory: Path) -> None:
    (data_directory / "PG_VERSION").write_bytes(b"\xe9\n")
    with pytest.raises(DataDirectoryError, match="is not a data directory pgdyno knows"):
        read_data_directory(data_directory)


def test_a_pipe_in_place_of_the_version_is_refused_rather_than_waited_for(data_directory: Path) -> None:
    (data_directory / "PG_VERSION").unlink()
    os.mkfifo(data_directory / "PG_VERSION")
    with pytest.raises(DataDirectoryError) as caught:
        read_data_directory(data_directory)
    assert caught.value.detail == "its PG_VERSION cannot be read: it is not a regular file"


@pytest.mark.parametrize("pid", ["9" * 5_000, "0", "4294967296", "-1", "\u0661"])
def test_a_pid_file_without_the_number_of_a_process_is_not_complete(data_directory: Path, pid: str) -> None:
    lines = [pid, str(data_directory), "1700000000", "5433", "/run/postgresql", "localhost", ""]
    (data_directory / "postmaster.pid").write_text("\n".join(lines), encoding="utf-8")
    found = read_data_directory(data_directory).postmaster
    assert reason_of(found.value).endswith("postmaster.pid is incomplete")


def test_a_pid_file_in_another_encoding_is_not_complete(data_directory: Path) -> None:
    (data_directory / "postmaster.pid").write_bytes(b"\xe9\n" * 8)
    found = read_data_directory(data_directory).postmaster
    assert reason_of(found.value).endswith("postmaster.pid is incomplete")


@pytest.fixture
def of_nobody(data_directory: Path) -> Path:
    """A data directory of another user, below directories that are closed to that user."""
    if os.geteuid() != 0:
        pytest.skip("giving a directory to another user takes root")
    for place in (data_directory, *data_directory.iterdir()):
        shutil.chown(place, "nobody")
    data_directory.chmod(0o700)
    return data_directory


@pytest.fixture
def roots_file() -> Iterator[Path]:
    """A file that root alone and root's group may read, in a directory that is open to all."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    file = directory / "secret.conf"
    file.write_text("app.secret = 'of root'\n")
    file.chmod(0o640)
    yield file
    shutil.rmtree(directory)


@pytest.mark.root
def test_root_reads_anothers_directory_wherever_it_lies(of_nobody: Path) -> None:
    found = read_data_directory(of_nobody)
    assert (found.major, found.owner) == (18, "nobody")
    files = [Path(setting.file) for setting in found.settings.or_else(())]
    assert files == [of_nobody / "postgresql.conf", of_nobody / "postgresql.auto.conf"]
    assert (os.geteuid(), os.getegid()) == (0, 0)


@pytest.mark.root
def test_a_link_to_roots_file_in_place_of_the_version_shows_nothing(
    of_nobody: Path, roots_file: Path
) -> None:
    (of_nobody / "PG_VERSION").unlink()
    (of_nobody / "PG_VERSION").symlink_to(roots_file)
    with pytest.raises(PrivilegeError) as caught:
        read_data_directory(of_nobody)
    assert caught.value.detail == f"{of_nobody}/PG_VERSION: Permission denied"


@pytest.mark.root
@pytest.mark.parametrize("directive", ["include", "include_if_exists"])
def test_an_include_of_roots_file_shows_nothing(of_nobody: Path, roots_file: Path, directive: str) -> None:
    (of_nobody / "postgresql.conf").write_text(f"{directive} '{roots_file}'\n")
    assert reason_of(read_data_directory(of_nobody).settings.value) == f"{roots_file}: Permission denied"


@pytest.mark.root
def test_roots_groups_are_left_while_root_reads(of_nobody: Path) -> None:
    groups = os.getgroups()
    with acting_as(of_nobody.stat().st_uid):
        assert 0 not in {os.getegid(), *os.getgroups()}
    assert (os.getegid(), os.getgroups()) == (0, groups)
