"""The caches of a processor, from a directory like /sys's."""

from __future__ import annotations

from pathlib import Path

from pgdyno.host.files.tree import Tree
from pgdyno.host.host import Cache
from pgdyno.host.machine.cpu import read_caches

DIRECTORY = "sys/devices/system/cpu/cpu0/cache"


def write(root: Path, index: int, **values: str) -> None:
    directory = root / DIRECTORY / f"index{index}"
    directory.mkdir(parents=True)
    for name, value in values.items():
        (directory / name).write_text(f"{value}\n")


def test_caches_have_their_geometry(tmp_path: Path) -> None:
    line = {"coherency_line_size": "64"}
    write(tmp_path, 0, level="1", type="Data", size="48K", ways_of_associativity="12", **line)
    write(tmp_path, 2, level="2", type="Unified", size="2048K", ways_of_associativity="16", **line)
    assert read_caches(Tree(tmp_path)) == (
        Cache(1, "Data", 48 << 10, 12, 64),
        Cache(2, "Unified", 2 << 20, 16, 64),
    )


def test_a_fully_associative_cache_has_as_many_ways_as_lines(tmp_path: Path) -> None:
    write(
        tmp_path,
        0,
        level="1",
        type="Data",
        size="1K",
        ways_of_associativity="0",
        coherency_line_size="64",
    )
    assert [one.ways for one in read_caches(Tree(tmp_path))] == [16]


def test_a_cache_whose_geometry_is_not_told_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 0, level="1", type="Data", size="48K")
    assert read_caches(Tree(tmp_path)) == ()
    assert read_caches(Tree(tmp_path / "nothing")) == ()
