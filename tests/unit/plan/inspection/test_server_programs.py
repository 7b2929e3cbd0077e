"""A server's programs are run only where its path leads to the very program that runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.plan.inspection.server_programs import only_root_changes, programs_of, user_of

PID = Fact(4711, "/proc")


def proc(root: Path, program: Path | str, *, namespace: str = "mnt:[1]") -> Path:
    """A /proc with this process and a postmaster."""
    for process, name in (("self", "mnt:[1]"), ("4711", namespace)):
        (root / "proc" / process / "ns").mkdir(parents=True)
        (root / "proc" / process / "ns/mnt").symlink_to(name)
    (root / "proc/4711/exe").symlink_to(program)
    return root


def test_programs_lie_beside_the_one_that_runs(tmp_path: Path) -> None:
    root = proc(tmp_path, "/usr/lib/postgresql/15/bin/postgres (deleted)")  # upgraded since it started
    assert programs_of(PID, root) == Path("/usr/lib/postgresql/15/bin")


def test_programs_of_an_emulated_server_are_its_own(tmp_path: Path) -> None:
    root = proc(tmp_path, "/usr/bin/qemu-aarch64-static")
    (root / "proc/4711/cmdline").write_bytes(
        b"/usr/bin/qemu-aarch64-static\0/opt/pg/bin/postgres\0-D\0/data\0"
    )
    assert programs_of(PID, root) == Path("/opt/pg/bin")


def test_programs_of_a_container_are_out_of_reach(tmp_path: Path) -> None:
    root = proc(tmp_path, "/no/such/bin/postgres", namespace="mnt:[2]")
    assert programs_of(PID, root) == Unknown(
        "process 4711 runs in a container, where /no/such/bin/postgres is a different file"
    )


def test_a_service_with_a_private_tmp_has_the_same_programs(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.touch()
    assert programs_of(PID, proc(tmp_path, program, namespace="mnt:[2]")) == tmp_path


def test_a_process_that_may_not_be_looked_at_is_out_of_reach(tmp_path: Path) -> None:
    assert programs_of(PID, tmp_path) == Unknown(
        "could not read the program of process 4711: No such file or directory"
    )


def test_a_server_elsewhere_is_out_of_reach() -> None:
    assert programs_of(unknown("no process here has the backend's process id 7", "/proc")) == Unknown(
        "it is not proven to run on this host: no process here has the backend's process id 7"
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory of programs that belong to root, like all directories above it."""
    if os.geteuid() != 0:
        pytest.skip("giving a file to another user takes root")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("postgres", "initdb"):
        (programs / name).touch()
    return programs


def test_programs_of_another_user_or_in_his_directory_are_not_roots_alone(programs: Path) -> None:
    assert only_root_changes(programs)
    for place in (programs / "initdb", programs, programs.parent):
        os.chown(place, 65534, 65534)
        assert not only_root_changes(programs)
        os.chown(place, 0, 0)


def test_programs_in_a_directory_open_to_all_are_not_roots_alone(programs: Path) -> None:
    programs.chmod(0o777)
    assert not only_root_changes(programs)
    programs.chmod(0o1777)  # sticky: who does not own a file cannot rename it
    assert only_root_changes(programs)


def test_programs_that_a_group_or_everybody_may_write_are_not_roots_alone(programs: Path) -> None:
    for place, mode in ((programs / "initdb", 0o755), (programs, 0o755)):
        place.chmod(mode | 0o020)
        assert only_root_changes(programs), "root's own group"
        os.chown(place, 0, 50)
        assert not only_root_changes(programs)
        os.chown(place, 0, 0)
        place.chmod(mode | 0o002)
        assert not only_root_changes(programs)
        place.chmod(mode)


def test_programs_behind_links_of_others_are_not_roots_alone(programs: Path) -> None:
    link = programs.parent / "link"
    link.symlink_to(programs)
    assert only_root_changes(link)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    assert not only_root_changes(link)
    (programs / "initdb").unlink()
    assert not only_root_changes(programs)
    (programs / "initdb").symlink_to("/dev/null")
    assert not only_root_changes(programs)


@pytest.mark.root
def test_a_postmasters_user_is_the_one_of_its_process(tmp_path: Path) -> None:
    process = tmp_path / "proc/4711"
    process.mkdir(parents=True)
    assert user_of(PID, tmp_path) == Unknown("process 4711 runs as root, which PostgreSQL refuses")
    os.chown(process, 65534, 65534)
    user = user_of(PID, tmp_path)
    assert not isinstance(user, Unknown)
    assert (user.name, user.is_other) == ("nobody", True)
    os.chown(process, 4_000_000, 65534)
    assert user_of(PID, tmp_path) == Unknown("process 4711 runs as user 4000000, which has no name here")
    process.rmdir()
    assert user_of(PID, tmp_path) == Unknown(
        "could not read the user of process 4711: No such file or directory"
    )
