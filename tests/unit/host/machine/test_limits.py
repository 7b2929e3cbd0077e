"""The smallest limit, whoever sets it, and never a guess."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.tree import NO_SUCH_FILE
from pgdyno.host.machine.limits import (
    narrowest,
    parse_rlimits,
    parse_seccomp,
    smallest,
)

HOST = Fact(100, "host")
FORBIDDEN: Fact[int] = unknown("permission denied", "group")


def test_the_smallest_limit_wins_with_its_source() -> None:
    assert smallest(HOST, [Fact(50, "a"), Fact(70, "b")]) == Fact(50, "a")


def test_a_limit_above_what_the_host_has_is_none() -> None:
    assert smallest(HOST, [Fact(9223372036854771712, "a")]) == HOST


def test_of_equal_limits_the_first_is_named() -> None:
    assert smallest(HOST, [Fact(100, "a"), Fact(50, "b"), Fact(50, "c")]) == Fact(50, "b")


def test_a_limit_that_cannot_be_read_makes_the_result_unknown() -> None:
    assert smallest(HOST, [Fact(50, "a"), FORBIDDEN]) == FORBIDDEN
    assert smallest(FORBIDDEN, [Fact(50, "a")]) == FORBIDDEN


@given(st.lists(st.integers(0, 200)))
def test_no_limit_below_the_result_is_ever_missed(limits: list[int]) -> None:
    assert smallest(HOST, [Fact(value, "x") for value in limits]).value == min([100, *limits])


def test_cpus_are_those_in_every_set_and_the_source_is_the_set_that_took_some_away() -> None:
    online: Fact[tuple[int, ...]] = Fact((0, 1, 2, 3), "online")
    sets: list[Fact[tuple[int, ...]]] = [
        Fact((0, 1, 2, 3), "root"),
        Fact((1, 2), "group"),
        Fact((1, 2, 3), "status"),
    ]
    assert narrowest(online, sets) == Fact((1, 2), "group")
    assert narrowest(online, [Fact(NO_SUCH_FILE, "root")]) == online
    denied: Fact[tuple[int, ...]] = unknown("permission denied", "group")
    assert narrowest(online, [denied]) == denied


def test_rlimits_have_the_kernels_names_and_soft_values() -> None:
    text = (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max open files            1024                 524288               files     \n"
        "Max nice priority         0                    0                    \n"
        "Max cpu time              unlimited            unlimited            seconds   \n"
    )
    assert parse_rlimits(text) == {
        "Max open files": "1024",
        "Max nice priority": "0",
        "Max cpu time": "unlimited",
    }
    assert parse_rlimits("nothing") == Unknown("no limits listed")


def test_seccomp_is_named() -> None:
    assert parse_seccomp({"Seccomp": "2"}) == "filter"
    assert parse_seccomp({"Seccomp": "7"}) == "7"
    assert parse_seccomp({}) == Unknown("no seccomp in this kernel")
