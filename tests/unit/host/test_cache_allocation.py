"""Groups that divide the caches, that cannot be read, and that only measure."""

from __future__ import annotations

from pathlib import Path

from pgdyno.host.cache_allocation import CacheAllocation, ControlledCache
from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.inspection import inspect_cache_allocation

TOP = "sys/fs/resctrl"
FILES = {
    "info/L3/num_closids": "16",
    "info/L3/cbm_mask": "7ff",
    "info/L3/min_cbm_bits": "1",
    "info/L3/shareable_bits": "600",
    "cpus": "ff",
    "schemata": "    MB:0=100\n    L3:0=7ff",
    "tasks": "1\n2",
    "mon_groups/watched/tasks": "2",
    "batch/schemata": "L3:0=f",
    "batch/tasks": "",
    "batch/mon_groups/one/tasks": "",
    "locked/schemata": "L3:uninitialized",
    "locked/tasks": "3",
}


def allocation_of(root: Path, files: dict[str, str]) -> CacheAllocation | None:
    for name, text in files.items():
        file = root / TOP / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return inspect_cache_allocation(Tree(root)).or_none()


def test_every_group_is_named_whether_its_division_can_be_read_or_not(tmp_path: Path) -> None:
    assert allocation_of(tmp_path, FILES) == CacheAllocation(
        is_mounted=True,
        caches={"L3": ControlledCache(16, 0x7FF, 1, 0x600)},
        schemata={"": "L3:0=7ff", "batch": "L3:0=f"},
        occupied=("", "locked"),
        groups=("batch", "locked", "mon_groups/watched", "batch/mon_groups/one"),
    )


def test_a_file_system_without_groups_has_none(tmp_path: Path) -> None:
    found = allocation_of(tmp_path, {"info/last_cmd_status": "ok", "schemata": "L3:0=7ff", "cpus": "ff"})
    assert found is not None
    assert found.groups == ()
    (tmp_path / TOP / "empty").mkdir()
    again = allocation_of(tmp_path, {})
    assert again is not None
    assert again.groups == ("empty",)
