"""Files of the kernel: names, values, and when two of them mean the same."""

from __future__ import annotations

import pytest

from pgdyno.host.kernel_file import COUPLED, choices_in, display_name, is_same, sysctl_path, value_in

THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def test_a_sysctl_has_the_name_that_people_know() -> None:
    assert sysctl_path("vm.dirty_bytes") == "/proc/sys/vm/dirty_bytes"
    assert display_name("/proc/sys/vm/dirty_bytes") == "vm.dirty_bytes"
    assert display_name(THP) == THP


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("60\n", "60"),
        ("always [madvise] never\n", "madvise"),
        ("4096\t131072\t6291456\n", "4096 131072 6291456"),
        ("1\nand more\n", "1"),
        ("", ""),
    ],
)
def test_the_value_is_in_the_first_line(text: str, value: str) -> None:
    assert value_in(text) == value


def test_choices_are_known_where_the_kernel_lists_them() -> None:
    assert choices_in("none [mq-deadline] kyber\n") == ("none", "mq-deadline", "kyber")
    assert choices_in("60\n") == ()


def test_masks_are_the_same_with_and_without_leading_zeros() -> None:
    rps = "/sys/class/net/eth0/queues/rx-0/rps_cpus"
    assert is_same(rps, "3", "00000000,00000003")
    assert not is_same(rps, "3", "00000001")
    assert is_same("/proc/irq/24/smp_affinity", "ff", "000000ff")


def test_numbers_elsewhere_are_what_they_look_like() -> None:
    assert not is_same("/proc/sys/vm/swappiness", "010", "10")
    assert is_same("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072 6291456", "4096 131072 6291456")


def test_coupled_files_name_each_other() -> None:
    assert all(COUPLED[COUPLED[path]] == path != COUPLED[path] for path in COUPLED)
    assert COUPLED["/proc/sys/vm/dirty_bytes"] == "/proc/sys/vm/dirty_ratio"
