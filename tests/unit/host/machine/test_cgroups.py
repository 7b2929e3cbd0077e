"""Control groups: paths as cgroup_namespaces(7) explains them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree
from pgdyno.host.machine.cgroups import (
    Hierarchy,
    Membership,
    cgroup_version,
    directories_down,
    find_hierarchy,
    parse_groups,
    path_below,
    read_hierarchy,
    read_membership,
)
from pgdyno.host.machine.limits import available_memory, cpu_limits, smallest
from pgdyno.host.machine.mounts import MountEntry


def v1(controllers: str, root: str = "/", mount_point: str | None = None) -> MountEntry:
    point = mount_point or f"/sys/fs/cgroup/{controllers}"
    return MountEntry("0:30", root, point, ("rw", *controllers.split(",")), "cgroup", "cgroup")


def v2(root: str = "/", mount_point: str = "/sys/fs/cgroup") -> MountEntry:
    return MountEntry("0:31", root, mount_point, ("rw", "nsdelegate"), "cgroup2", "cgroup2")


def member(groups: dict[str, str], *mounts: MountEntry, is_namespaced: bool = False) -> Membership:
    return Membership(groups, mounts, is_namespaced)


def test_the_groups_of_v1_and_v2_are_told_apart() -> None:
    text = "12:cpu,cpuacct:/docker/a:b\n1:name=systemd:/docker/a:b\n0::/system.slice/x.service"
    assert parse_groups(text) == {
        "cpu": "/docker/a:b",
        "cpuacct": "/docker/a:b",
        "name=systemd": "/docker/a:b",
        "": "/system.slice/x.service",
    }


@pytest.mark.parametrize(
    ("path", "root", "below"),
    [
        ("/", "/", ()),
        ("/a/b", "/", ("a", "b")),
        ("/docker/x", "/docker/x", ()),
        ("/docker/x/pg", "/docker/x", ("pg",)),
        ("/docker/xy", "/docker/x", None),
        ("/", "/docker/x", None),
        ("/../other", "/", None),  # a sibling of our namespace's root
        ("/../..", "/", None),  # above our namespace's root
        ("/../other", "/..", ("other",)),  # the mount shows one level above our namespace's root
        ("/../..", "/../..", ()),
        ("/", "/../..", None),  # the names of the two levels between are not told
    ],
)
def test_a_group_is_found_below_what_is_mounted_or_not_at_all(
    path: str, root: str, below: tuple[str, ...] | None
) -> None:
    assert path_below(path, root) == below


def test_all_directories_from_the_mount_to_the_group_can_limit() -> None:
    assert directories_down("/sys/fs/cgroup", ("a", "b")) == (
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/a",
        "/sys/fs/cgroup/a/b",
    )


def test_on_a_hybrid_host_a_controller_is_where_its_v1_line_says() -> None:
    both = member({"memory": "/m", "": "/u"}, v1("memory"), v2(mount_point="/sys/fs/cgroup/unified"))
    assert find_hierarchy(both, "memory") == Hierarchy(
        1, ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/m")
    )
    assert find_hierarchy(both, "hugetlb") == Hierarchy(
        2, ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/u")
    )


def test_v1_controllers_share_a_mount() -> None:
    assert find_hierarchy(member({"cpu": "/"}, v1("cpu,cpuacct")), "cpu") == Hierarchy(
        1, ("/sys/fs/cgroup/cpu,cpuacct",)
    )


def test_a_mount_that_does_not_show_the_group_gives_way_to_one_that_does() -> None:
    mounts = (v2(), v2("/other", "/mnt"))
    assert find_hierarchy(member({"": "/pg"}, *mounts), "memory") == Hierarchy(
        2, ("/sys/fs/cgroup", "/sys/fs/cgroup/pg")
    )


def test_of_two_mounts_on_one_point_the_later_is_what_we_would_read() -> None:
    assert find_hierarchy(member({"": "/pg"}, v2(), v2("/pg")), "memory") == Hierarchy(2, ("/sys/fs/cgroup",))


def test_a_group_outside_of_the_mount_is_unknown_and_not_unlimited() -> None:
    found = find_hierarchy(member({"": "/../db"}, v2(), is_namespaced=True), "memory")
    assert found == Unknown("control group /../db is outside /sys/fs/cgroup, which shows /")


def test_an_unmounted_hierarchy_is_unknown_in_a_namespace_and_unlimited_at_the_real_root() -> None:
    groups = {"memory": "/"}
    unseen = Unknown("the hierarchy of control group / is not mounted")
    assert find_hierarchy(member(groups, is_namespaced=True), "memory") == unseen
    assert find_hierarchy(member(groups), "memory") == Hierarchy(1, ())


def test_a_controller_that_the_kernel_does_not_have_limits_nothing() -> None:
    assert find_hierarchy(member({}), "memory") == Hierarchy(2, ())


@pytest.mark.parametrize(
    ("mounts", "version"),
    [((), "none"), ((v1("cpu"),), "v1"), ((v2(),), "v2"), ((v1("cpu"), v2()), "hybrid")],
)
def test_the_version_follows_from_the_mounts(mounts: tuple[MountEntry, ...], version: str) -> None:
    assert cgroup_version(mounts) == version


def write(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


NO_GROUP = Unknown("not a control group: it was removed, or another file system is mounted over it")
CGROUP2 = "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def test_a_group_whose_directory_is_gone_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/mountinfo", CGROUP2)
    write(tmp_path, "/proc/7/cgroup", "0::/pg (deleted)\n")
    write(tmp_path, "/sys/fs/cgroup/memory.max", "max\n")
    tree = Tree(tmp_path)
    found = read_hierarchy(tree, read_membership(tree, "7"), "memory")
    assert (found.value, found.source) == (NO_GROUP, "/sys/fs/cgroup/pg (deleted)")


@pytest.mark.parametrize("covered_by", ["nothing", "sysfs"])
def test_limits_below_a_file_system_that_covers_the_groups_are_unknown(
    tmp_path: Path, covered_by: str
) -> None:
    """Mounts that are covered stay in mountinfo. A sysfs has an empty directory /sys/fs/cgroup."""
    write(tmp_path, "/proc/self/mountinfo", f"{CGROUP2}40 22 0:40 / /sys rw - {covered_by} none rw\n")
    write(tmp_path, "/proc/self/cgroup", "0::/\n")
    write(tmp_path, "/proc/meminfo", "MemAvailable: 1000 kB\n")
    (tmp_path / ("sys/fs/cgroup" if covered_by == "sysfs" else "sys")).mkdir(parents=True)
    tree = Tree(tmp_path)
    assert available_memory(tree, "self") == Fact(NO_GROUP, "/sys/fs/cgroup")
    assert smallest(Fact(4.0, "host"), cpu_limits(tree, read_membership(tree, "self"))).value == NO_GROUP


def test_a_kernel_without_control_groups_limits_nothing(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/mountinfo", "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    tree = Tree(tmp_path)
    assert read_hierarchy(tree, read_membership(tree, "self"), "memory").value == Hierarchy(2, ())


def test_the_groups_of_a_process_that_is_gone_are_unknown(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/mountinfo", CGROUP2)
    assert read_membership(Tree(tmp_path), "7").value == NO_SUCH_FILE
