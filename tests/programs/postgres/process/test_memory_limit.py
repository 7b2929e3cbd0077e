"""Control groups for servers: where they can be made, on trees written for these tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.base.errors import PrivilegeError, ServerError
from pgdyno.postgres.process.memory_limit import (
    GroupPlace,
    MemoryGroup,
    drop_from_page_cache,
    find_place,
    group_name,
    remove_recorded,
)

LIMIT_BYTES = 256 << 20


def unified(root: Path, controllers: dict[str, str]) -> list[str]:
    """Make groups of version 2, topmost first, with what each gives its children."""
    directories = []
    directory = root
    for name, given in controllers.items():
        directory = directory / name
        directory.mkdir()
        (directory / "cgroup.subtree_control").write_text(f"{given}\n")
        directories.append(str(directory))
    return directories


def group(place: GroupPlace, tmp_path: Path) -> MemoryGroup:
    return MemoryGroup(place, "pgdyno-run-1-seat0", LIMIT_BYTES, tmp_path / "seat0.memory-group")


def test_with_version_1_a_group_is_made_below_our_own(tmp_path: Path) -> None:
    own = tmp_path / "user"
    own.mkdir()
    assert find_place(1, [str(tmp_path), str(own)]) == GroupPlace(1, own)


def test_with_version_2_a_group_is_made_where_children_have_the_memory_controller(tmp_path: Path) -> None:
    directories = unified(
        tmp_path, {"root": "cpu memory", "user.slice": "memory pids", "session-1.scope": ""}
    )
    assert find_place(2, directories) == GroupPlace(2, tmp_path / "root/user.slice")


def test_without_the_memory_controller_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PrivilegeError) as caught:
        find_place(2, unified(tmp_path, {"root": "cpu", "user.slice": ""}))
    assert caught.value.message == "the memory of a server cannot be limited here"
    assert caught.value.detail == "no control group above this process delegates the memory controller"
    assert "choose a preset without a memory limit" in (caught.value.hint or "")


def test_without_control_groups_it_is_refused() -> None:
    with pytest.raises(PrivilegeError) as caught:
        find_place(2, [])
    assert caught.value.detail == "no control group hierarchy with the memory controller is mounted"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_group_that_we_must_not_write_to_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o555)
    with pytest.raises(PrivilegeError, match="by this user"):
        find_place(1, [str(own)])


def test_version_1_limits_memory_and_where_known_swap(tmp_path: Path) -> None:
    made = group(GroupPlace(1, tmp_path), tmp_path)
    made.create()
    assert (made.directory / "memory.limit_in_bytes").read_text() == str(LIMIT_BYTES)
    assert not (made.directory / "memory.memsw.limit_in_bytes").exists()


@pytest.fixture
def _kernel_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a new directory hold the files of a control group, as the kernel does."""
    make = Path.mkdir

    def make_group(path: Path, mode: int = 0o777) -> None:
        make(path, mode)
        (path / "memory.memsw.limit_in_bytes").touch()
        (path / "memory.swap.max").touch()

    monkeypatch.setattr(Path, "mkdir", make_group)


@pytest.mark.usefixtures("_kernel_files")
def test_swap_does_not_make_up_for_memory(tmp_path: Path) -> None:
    first, second = group(GroupPlace(1, tmp_path), tmp_path), group(GroupPlace(2, tmp_path / "2"), tmp_path)
    first.create()
    # Version 1 counts memory and swap together, version 2 swap alone.
    assert (first.directory / "memory.memsw.limit_in_bytes").read_text() == str(LIMIT_BYTES)
    second.place.directory.mkdir()
    second.create()
    assert (second.directory / "memory.swap.max").read_text() == "0"


def test_version_2_limits_memory(tmp_path: Path) -> None:
    made = group(GroupPlace(2, tmp_path), tmp_path)
    made.create()
    assert (made.directory / "memory.max").read_text() == str(LIMIT_BYTES)


def test_a_group_is_recorded_before_it_is_made_and_forgotten_after_it_is_removed(tmp_path: Path) -> None:
    made = group(GroupPlace(2, tmp_path), tmp_path)
    made.create()
    assert made.record.read_text().strip() == str(made.directory)
    assert sorted(tmp_path.iterdir()) == sorted([made.directory, made.record])
    (made.directory / "memory.max").unlink()  # the kernel's files go with the directory, these do not
    made.remove()
    assert not made.directory.exists()
    assert not made.record.exists()


def test_the_kernels_refusal_is_an_error_with_its_reason(tmp_path: Path) -> None:
    made = group(GroupPlace(1, tmp_path / "missing"), tmp_path)
    with pytest.raises(ServerError) as caught:
        made.create()
    assert caught.value.message.startswith("could not limit a server's memory with ")
    assert caught.value.detail == "No such file or directory"
    assert not made.record.exists()


def test_a_group_that_stays_is_an_error_that_says_how_to_remove_it(tmp_path: Path) -> None:
    made = group(GroupPlace(2, tmp_path), tmp_path)
    made.create()
    with pytest.raises(ServerError) as caught:
        made.remove()  # not empty: these are ordinary files
    assert caught.value.message == f"could not remove the control group {made.directory}"
    assert (caught.value.hint or "").endswith(f"rmdir {made.directory}")


def test_what_a_killed_run_has_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / group_name(tmp_path, "seat0")
    left.mkdir()
    (tmp_path / "seat0.memory-group").write_text(f"{left}\n")
    (tmp_path / "seat1.memory-group").write_text(f"{tmp_path / group_name(tmp_path, 'seat1')}\n")
    remove_recorded(tmp_path, [tmp_path])
    assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def in_group(place: Path, process: subprocess.Popen[bytes]) -> None:
    place.mkdir()
    (place / "cgroup.procs").write_text(f"{process.pid}\n")


def test_processes_of_a_recorded_group_are_ended_and_its_record_stays_until_it_is_gone(
    tmp_path: Path,
) -> None:
    left, record = tmp_path / group_name(tmp_path, "seat0"), tmp_path / "seat0.memory-group"
    with subprocess.Popen(["sleep", "60"]) as process:
        in_group(left, process)
        record.write_text(f"{left}\n")
        with pytest.raises(ServerError, match="could not remove the control group"):
            remove_recorded(tmp_path, [tmp_path])  # unlike the kernel's, this member list is a file
        assert process.wait(120) == -signal.SIGKILL
    assert record.exists()


def test_a_groups_processes_are_ended_when_it_is_removed(tmp_path: Path) -> None:
    made = group(GroupPlace(2, tmp_path), tmp_path)
    with subprocess.Popen(["sleep", "60"]) as process:
        in_group(made.directory, process)
        with pytest.raises(ServerError, match="could not remove the control group"):
            made.remove()
        assert process.wait(120) == -signal.SIGKILL


@pytest.mark.parametrize("recorded", ["", "relative", "elsewhere", "dots", "another run's"])
def test_a_record_of_anything_but_a_group_of_this_directory_is_only_forgotten(
    tmp_path: Path, recorded: str
) -> None:
    groups, scratch = tmp_path / "groups", tmp_path / "run-1"
    groups.mkdir()
    scratch.mkdir()
    other = tmp_path / group_name(scratch, "seat0")
    said = {
        "": "",
        "relative": group_name(scratch, "seat0"),
        "elsewhere": str(other),
        "dots": str(groups / ".." / other.name),
        "another run's": str(groups / "pgdyno-run-2-seat0"),
    }[recorded]
    with subprocess.Popen(["sleep", "60"]) as process:
        in_group(other, process)
        in_group(groups / "pgdyno-run-2-seat0", process)
        (scratch / "seat0.memory-group").write_text(said)
        remove_recorded(scratch, [groups])
        assert process.poll() is None
        process.kill()
    assert other.exists()
    assert list(scratch.iterdir()) == []


def test_a_program_enters_its_group_before_it_begins(tmp_path: Path) -> None:
    made = group(GroupPlace(1, tmp_path), tmp_path)
    made.create()
    shown = subprocess.run(
        made.command([sys.executable, "-c", "import os, sys; print(os.getpid(), sys.argv[1])", "word"]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    members = (made.directory / "cgroup.procs").read_text()
    assert shown == [members.strip(), "word"]


def test_forgetting_cached_pages_leaves_files_as_they_are_and_skips_links_and_pipes(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/1").write_bytes(b"rows" * 4096)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    drop_from_page_cache(tmp_path)
    assert (tmp_path / "base/1").read_bytes() == b"rows" * 4096
