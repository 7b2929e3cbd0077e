"""Mounts: lines after proc_pid_mountinfo(5)."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.mounts import (
    MountEntry,
    disk_above,
    inspect_mounts,
    mount_of,
    parse_mountinfo,
    unescape,
)

# The manual page's own example, with two optional fields added to the second line.
TEXT = r"""36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
40 36 8:1 / /srv/pg\040data rw shared:4 master:2 - xfs /dev/sda1 rw,attr2
broken line
41 36 8:2 /
"""


def test_a_mount_has_root_point_options_type_and_device() -> None:
    first = parse_mountinfo(TEXT)[0]
    assert first == MountEntry(
        device_number="98:0",
        root="/mnt1",
        mount_point="/mnt2",
        options=("rw", "noatime", "errors=continue"),
        filesystem="ext3",
        device="/dev/root",
    )


def test_optional_fields_are_skipped_and_blanks_unescaped() -> None:
    second = parse_mountinfo(TEXT)[1]
    assert (second.mount_point, second.device) == ("/srv/pg data", "/dev/sda1")


def test_lines_of_another_format_are_left_out() -> None:
    assert len(parse_mountinfo(TEXT)) == 2


@given(st.text(st.characters(blacklist_categories=["Cs"]), max_size=30))
def test_paths_escaped_as_the_kernel_does_come_back(path: str) -> None:
    escaped = "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in path)
    assert unescape(escaped) == path


@given(st.text())
def test_no_text_makes_the_parser_fail(text: str) -> None:
    with does_not_raise():
        parse_mountinfo(text)


def entry(mount_point: str, device: str = "d") -> MountEntry:
    return MountEntry("8:1", "/", mount_point, ("rw",), "ext4", device)


@pytest.mark.parametrize(
    ("path", "mount_point"),
    [("/var/lib/pg", "/var/lib"), ("/var/library", "/var"), ("/var", "/var"), ("/srv", "/")],
)
def test_a_path_is_on_the_longest_mount_point_above_it(path: str, mount_point: str) -> None:
    found = mount_of(path, [entry("/"), entry("/var"), entry("/var/lib"), entry("/var/lib/pg2")])
    assert found is not None
    assert found.mount_point == mount_point


def test_of_two_mounts_on_one_point_the_later_hides_the_earlier() -> None:
    assert mount_of("/x", [entry("/", "below"), entry("/", "above")]) == entry("/", "above")


def test_a_path_without_a_mount_has_none() -> None:
    assert mount_of("/srv", [entry("/var")]) is None


@pytest.mark.parametrize(
    ("path", "disk"),
    [
        ("../../devices/pci0000:00/nvme/nvme0/nvme0n1/nvme0n1p2", "nvme0n1"),
        ("../../devices/virtual/block/dm-3", "dm-3"),
        ("../../devices/virtual/block/md0", Unknown("no parent disk")),
    ],
)
def test_a_partitions_disk_is_the_directory_above_it(path: str, disk: str | Unknown) -> None:
    assert disk_above(path, ("dm-3", "nvme0n1")) == disk


def test_a_data_directory_that_is_not_known_has_no_mount_rather_than_the_roots(tmp_path: Path) -> None:
    denied: Fact[str] = unknown("permission denied", "/proc/600/cwd")
    found = inspect_mounts(Tree(tmp_path), "600", denied)
    assert (found.value, found.source) == (denied.value, denied.source)


def test_without_any_matching_mount_the_reason_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        "40 36 8:1 / /srv rw - xfs /dev/sda1 rw\n", encoding="utf-8"
    )
    found = inspect_mounts(Tree(tmp_path), "self", Fact("/data", "stated"))
    assert found.value == Unknown("no mount holds /data")
