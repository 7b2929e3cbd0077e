"""Keys of registers, and what their bits say."""

from __future__ import annotations

import pytest

from pgdyno.host.msr import Register, register_of


def test_a_key_names_a_cpu_and_a_register() -> None:
    assert register_of("/dev/cpu/17/msr:0xc0000108") == Register(17, 0xC0000108)
    assert Register(17, 0xC0000108).device == "/dev/cpu/17/msr"


@pytest.mark.parametrize(
    "key",
    [
        "/dev/cpu/17/msr",
        "/dev/cpu/*/msr:0x1a4",
        "/dev/cpu/1/msr:420",
        "/dev/cpu/1/msr:0x1A4",
        "/dev/cpu/1/msr:0x1a4\n",
        "/dev/cpu/1/../../kmem:0x1a4",
        "/sys/block/sda/queue/scheduler",
    ],
)
def test_everything_else_is_a_files_path(key: str) -> None:
    assert register_of(key) is None


def test_a_bit_that_is_set_turns_its_prefetcher_off() -> None:
    # Intel: bit 0 is the L2 prefetcher, 2 the DCU prefetcher. AMD: bit 1 L1Stride, 5 UpDown; 4 is reserved.
    assert Register(0, 0x1A4).turned_off(0b0101) == ("L2", "L1 next line")
    assert Register(0, 0x1A4).turned_off(0x10) == ()
    assert Register(0, 0xC0000108).turned_off(0b110010) == ("L1 stride", "L2 up/down")


def test_only_prefetchers_bits_may_be_changed() -> None:
    assert [Register(0, number).changeable_bits for number in (0x1A4, 0xC0000108, 0x150)] == [0xF, 0x2F, 0]
