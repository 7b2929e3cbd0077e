"""Caches that callgrind is told to simulate."""

from __future__ import annotations

from pgdyno.host.host import Cache
from pgdyno.profile.simulated_caches import simulated_caches

L1D, L1I = Cache(1, "Data", 48 << 10, 12, 64), Cache(1, "Instruction", 32 << 10, 8, 64)
L2, L3 = Cache(2, "Unified", 2 << 20, 16, 64), Cache(3, "Unified", 60 << 20, 15, 64)


def test_the_second_level_is_callgrinds_last() -> None:
    found = simulated_caches((L1D, L1I, L2, L3))
    assert found.options == ("--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64")
    assert found.remarks == ()
    assert found.text.replace("\xa0", " ") == "L1i 32 kB, 8 ways; L1d 48 kB, 12 ways; L2 2 MB, 16 ways"


def test_sets_that_are_no_power_of_two_are_cut_and_said() -> None:
    # 1.25 MB in 8 ways of 64 B has 2560 sets, of which 2048 remain: 1 MB.
    found = simulated_caches((L1I, L1D, Cache(2, "Unified", 1280 << 10, 8, 64)))
    assert found.options[2] == "--LL=1048576,8,64"
    [remark] = found.remarks
    assert "L2 has 1 MB instead of this processor's 1.25 MB" in remark.replace("\xa0", " ")


def test_caches_that_are_not_told_are_callgrinds_own() -> None:
    found = simulated_caches(())
    assert found.options == ()
    assert len(found.remarks) == 3
