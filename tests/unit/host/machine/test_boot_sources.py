"""What sets the kernel's values when a machine starts, on directories that look like machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.boot_sources import (
    set_later,
    why_no_sysctls,
    why_no_tmpfiles,
    why_no_udev,
    why_not_this_etc,
)

OURS = "/etc/sysctl.d/60-pgdyno.conf"
SWAPPINESS, DIRTY = "/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_bytes"


def machine(root: Path, files: dict[str, str]) -> Tree:
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Tree(root)


@pytest.mark.parametrize("name", ["99-theirs.conf", "60-q.conf", "zzz.conf"])
@pytest.mark.parametrize("directory", ["/etc/sysctl.d", "/run/sysctl.d", "/usr/lib/sysctl.d"])
def test_a_later_file_in_any_directory_wins(tmp_path: Path, directory: str, name: str) -> None:
    tree = machine(tmp_path, {f"{directory}/{name}": "kernel.panic = 1\nvm.swappiness=60\n"})
    assert list(set_later(tree, OURS, [SWAPPINESS, DIRTY])) == [(f"{directory}/{name}", SWAPPINESS)]


@pytest.mark.parametrize("name", ["10-theirs.conf", "60-pgdyno.conf", "50-z.conf", "99-off.conf.bak"])
def test_an_earlier_file_and_one_that_is_not_read_does_not_win(tmp_path: Path, name: str) -> None:
    tree = machine(tmp_path, {f"/etc/sysctl.d/{name}": "vm.swappiness = 60\n"})
    assert list(set_later(tree, OURS, [SWAPPINESS])) == []


@pytest.mark.parametrize(
    ("line", "is_set"),
    [
        ("vm/swappiness = 60", True),
        ("-vm.swappiness = 60", True),
        ("vm.* = 1", True),
        ("# vm.swappiness = 60", False),
        ("; vm.swappiness = 60", False),
        ("-vm.swappiness", False),  # which only takes it out of patterns
        ("vm.swappiness_not = 60", False),
    ],
)
def test_lines_are_read_as_sysctl_d_writes_them(tmp_path: Path, line: str, *, is_set: bool) -> None:
    tree = machine(tmp_path, {"/etc/sysctl.d/99-theirs.conf": f"{line}\n"})
    assert bool(list(set_later(tree, OURS, [SWAPPINESS]))) is is_set


@pytest.mark.parametrize("name", ["net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"])
def test_a_dot_within_a_name_is_told_from_one_between_names(tmp_path: Path, name: str) -> None:
    key = "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
    tree = machine(tmp_path, {"/etc/sysctl.d/99-theirs.conf": f"{name} = 1\n"})
    assert [found for _, found in set_later(tree, OURS, [key])] == [key]


def test_a_file_that_another_of_its_name_replaces_does_not_count(tmp_path: Path) -> None:
    files = {"/usr/lib/sysctl.d/99-theirs.conf": "vm.swappiness = 60\n", "/etc/sysctl.d/99-theirs.conf": ""}
    assert list(set_later(machine(tmp_path, files), OURS, [SWAPPINESS])) == []


def test_sysctl_conf_comes_last_where_systemd_does_not_run(tmp_path: Path) -> None:
    tree = machine(tmp_path, {"/etc/sysctl.conf": "vm.swappiness = 60\n"})
    assert list(set_later(tree, OURS, [SWAPPINESS])) == [("/etc/sysctl.conf", SWAPPINESS)]
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert list(set_later(tree, OURS, [SWAPPINESS])) == []


def test_sysctl_conf_is_named_once_where_a_link_leads_to_it(tmp_path: Path) -> None:
    """As Debian does, so that systemd reads it as well."""
    tree = machine(tmp_path, {"/etc/sysctl.conf": "vm.swappiness = 60\n"})
    (tmp_path / "etc/sysctl.d").mkdir()
    (tmp_path / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    assert list(set_later(tree, OURS, [SWAPPINESS])) == [("/etc/sysctl.d/99-sysctl.conf", SWAPPINESS)]


def test_a_machine_that_systemd_starts_has_all_places(tmp_path: Path) -> None:
    for directory in ("run/systemd/system", "run/udev"):
        (tmp_path / directory).mkdir(parents=True)
    tree = Tree(tmp_path)
    assert [why(tree) for why in (why_no_sysctls, why_no_udev, why_no_tmpfiles)] == [None, None, None]


def test_a_machine_without_systemd_says_what_is_missing(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert why_no_sysctls(tree) == "neither systemd nor the program sysctl is installed to set them"
    assert why_no_udev(tree) == "udev is not running"
    assert why_no_tmpfiles(tree) == "systemd, which reads tmpfiles.d, is not running"


def test_the_program_sysctl_is_enough_for_sysctls(tmp_path: Path) -> None:
    assert why_no_sysctls(machine(tmp_path, {"/usr/sbin/sysctl": "\x7fELF"})) is None


def test_a_container_has_an_etc_of_its_own(tmp_path: Path) -> None:
    tree = machine(tmp_path, {"/proc/self/cgroup": "0::/docker/4f1a\n", "/proc/cpuinfo": "flags\t: fpu\n"})
    (tmp_path / "proc/self/ns").mkdir()
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532201]")
    assert why_not_this_etc(tree) == (
        "pgdyno runs in a container (container:docker); its /etc is not the machine's"
    )
    assert why_not_this_etc(Tree(tmp_path / "nowhere")) is None
