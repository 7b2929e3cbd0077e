"""Counters of the whole host, after proc_stat(5) and the kernel's iostats.rst."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.usage import (
    DeviceCounters,
    SystemCounters,
    device_of,
    parse_device,
    parse_system,
    read_device,
    read_system,
)

STAT = """cpu  100 10 20 500 5 1 2 3 7 0
cpu0 60 10 10 250 5 1 1 1 7 0
cpu1 40 0 10 250 0 0 1 2 0 0
intr 1 2 3
ctxt 4321
btime 1
"""
# Linux 5.5 and later have 17 figures; 2.6 had 11.
DISKSTATS = """   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 1682 145 8000 2054 9037 1969 4000 9151 0 1072 11723 1682 35 610 315 2958 201
 254       1 vda1 12 5 16 4 7 9 24 1 0 2 3
"""
MOUNTS = """22 27 0:21 / /proc rw - proc proc rw
27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
28 27 0:30 / /srv/memory rw - tmpfs tmpfs rw
"""


def tree(root: Path, directory: str) -> Tree:
    process = root / "proc" / "7"
    process.mkdir(parents=True)
    (process / "cwd").symlink_to(directory)
    (process / "mountinfo").write_text(MOUNTS)
    (root / "proc" / "stat").write_text(STAT)
    (root / "proc" / "diskstats").write_text(DISKSTATS)
    return Tree(root)


def test_busy_is_what_vmstat_shows_as_user_and_system() -> None:
    # 100 + 10 + 20 + 1 + 2 ticks of 10 ms, of those and 500 + 5 + 3; guest time is part of user's.
    assert parse_system(STAT) == SystemCounters(cpus=2, busy_s=1.33, total_s=6.41, context_switches=4321)


def test_a_partition_has_counters_of_its_own() -> None:
    assert parse_device(DISKSTATS, "254:1") == DeviceCounters(12, 16 * 512, 7, 24 * 512)
    assert parse_device(DISKSTATS, "254:0") == DeviceCounters(1682, 8000 * 512, 9037, 4000 * 512)
    assert parse_device(DISKSTATS, "8:0") == Unknown("no device 8:0")


def test_the_device_is_the_one_that_holds_the_data_directory(tmp_path: Path) -> None:
    found = tree(tmp_path, "/var/lib/data")
    assert device_of(found, 7).value == "254:1"
    assert read_device(found, device_of(found, 7)).value == DeviceCounters(12, 16 * 512, 7, 24 * 512)
    assert read_system(found).is_known


def test_a_file_system_in_memory_has_no_device(tmp_path: Path) -> None:
    found = tree(tmp_path, "/srv/memory/data")
    nothing = Unknown("tmpfs has no block device")
    assert device_of(found, 7).value == nothing
    assert read_device(found, device_of(found, 7)).value == nothing


def test_a_process_that_has_ended_has_no_device(tmp_path: Path) -> None:
    assert device_of(Tree(tmp_path), 7) == Fact(Unknown("no such file"), "/proc/7/cwd")


@given(st.text(max_size=200))
def test_any_other_text_is_unknown_and_no_exception(text: str) -> None:
    assert isinstance(parse_system(text), Unknown)
    assert isinstance(parse_device(text, "8:0"), Unknown)
