"""Limits in the files of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.host.machine.test_limits import HOST
from tests.unit.host.machines import FixtureTree, load

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.tree import NO_SUCH_FILE
from pgdyno.host.machine.cgroups import read_membership
from pgdyno.host.machine.limits import (
    NO_LIMIT,
    available_memory,
    cpu_limits,
    cpu_max,
    hierarchical_limit,
    hugetlb_limits,
    limit,
    memory_left,
    memory_limits,
    smallest,
)


def test_absent_files_and_stated_freedom_do_not_limit() -> None:
    assert smallest(HOST, [Fact(NO_SUCH_FILE, "a"), Fact(NO_LIMIT, "b")]) == HOST


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("150000 100000", 1.5),
        ("max 100000", NO_LIMIT),
        ("50000 0", Unknown("not a period: 0 us")),
        ("much 100000", Unknown('not a number: "much"')),
        ("50000", Unknown('not a number: ""')),
    ],
)
def test_cpu_max_is_quota_by_period(text: str, cpus: float | Unknown) -> None:
    assert cpu_max(text) == cpus


def test_limits_are_numbers_max_or_minus_one() -> None:
    assert (limit("4096"), limit("max"), limit("-1")) == (4096, NO_LIMIT, NO_LIMIT)


def test_the_hierarchical_limit_is_found_among_the_statistics() -> None:
    assert hierarchical_limit("cache 0\nhierarchical_memory_limit 1610612736\n") == 1610612736
    assert hierarchical_limit("cache 0\n") == NO_SUCH_FILE


def test_a_forbidden_ancestor_is_among_the_limits() -> None:
    pod = "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice"
    tree = FixtureTree(load("kubernetes-pod-limit-on-ancestor").tree.root, (f"{pod}/*/memory.max",))
    facts = memory_limits(tree, read_membership(tree, "48213"))
    assert [fact.value for fact in facts] == [
        NO_SUCH_FILE,
        32248471552,
        NO_LIMIT,
        Unknown("permission denied"),
        Unknown("permission denied"),
    ]


def test_a_quota_without_its_period_is_unknown() -> None:
    group = "/sys/fs/cgroup/cpu,cpuacct"
    tree = FixtureTree(load("docker-cgroup-v1").tree.root, (f"{group}/cpu.cfs_period_us",))
    assert cpu_limits(tree, read_membership(tree, "self")) == [
        unknown(f"permission denied: {group}/cpu.cfs_period_us", f"{group}/cpu.cfs_quota_us")
    ]


@pytest.mark.parametrize(
    ("page_bytes", "name"),
    [(65536, "64KB"), (2 << 20, "2MB"), (512 << 20, "512MB"), (1 << 30, "1GB"), (16 << 30, "16GB")],
)
def test_files_of_huge_page_limits_are_named_as_the_kernel_does(
    tmp_path: Path, page_bytes: int, name: str
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n", encoding="utf-8")
    mounts = tmp_path / "proc/self/mountinfo"
    mounts.write_text("30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n", encoding="utf-8")
    (tmp_path / "cg").mkdir()
    (tmp_path / "cg/cgroup.procs").touch()
    (tmp_path / f"cg/hugetlb.{name}.max").write_text("0\n", encoding="utf-8")
    tree = FixtureTree(tmp_path)
    assert Fact(0, f"/cg/hugetlb.{name}.max") in hugetlb_limits(
        tree, read_membership(tree, "self"), page_bytes
    )


def test_what_is_left_counts_what_the_group_uses_already_but_not_cache_it_gives_up(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 1000 kB\n", encoding="utf-8")
    (tmp_path / "proc/self/cgroup").write_text("0::/db\n", encoding="utf-8")
    mounts = tmp_path / "proc/self/mountinfo"
    mounts.write_text("30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n", encoding="utf-8")
    group = tmp_path / "cg/db"
    group.mkdir(parents=True)
    (group / "cgroup.procs").touch()
    for name, text in {"max": "8000", "current": "7900", "stat": "anon 7000\ninactive_file 400"}.items():
        (group / f"memory.{name}").write_text(text + "\n", encoding="utf-8")
    tree = FixtureTree(tmp_path)
    left = Fact(500, "/cg/db/memory.max, /cg/db/memory.current")
    assert left in memory_left(tree, read_membership(tree, "self"))
    assert available_memory(tree, "self") == left
    (group / "memory.max").write_text("max\n", encoding="utf-8")
    assert available_memory(tree, "self") == Fact(1000 * 1024, "/proc/meminfo")
