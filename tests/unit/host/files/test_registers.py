"""Registers among the files of the kernel that somebody asks for; a device is a plain file with holes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.files.kernel_files import read_kernel_files
from pgdyno.host.files.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for cpu, value in ((0, 0x0), (1, 0x5)):
        device = tmp_path / f"dev/cpu/{cpu}/msr"
        device.parent.mkdir(parents=True)
        device.write_bytes(bytes(0x1A4) + value.to_bytes(8, "little"))
    (tmp_path / "dev/cpu/microcode").touch()
    return Tree(tmp_path)


def test_a_pattern_stands_for_every_cpu_that_has_the_register(tree: Tree) -> None:
    assert read_kernel_files(tree, ["/dev/cpu/*/msr:0x1a4", "/dev/cpu/*/msr:0xc0000108"]) == {
        "/dev/cpu/0/msr:0x1a4": Fact("0x0", "/dev/cpu/0/msr"),
        "/dev/cpu/1/msr:0x1a4": Fact("0x5", "/dev/cpu/1/msr"),
    }


def test_a_register_asked_for_by_name_is_unknown_where_it_is_not_there(tree: Tree) -> None:
    keys = ["/dev/cpu/1/msr:0xc0000108", "/dev/cpu/2/msr:0x1a4"]
    assert read_kernel_files(tree, keys) == {
        keys[0]: unknown("empty", "/dev/cpu/1/msr"),
        keys[1]: unknown("no such file", "/dev/cpu/2/msr"),
    }
