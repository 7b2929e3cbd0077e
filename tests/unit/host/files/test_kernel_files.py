"""The kernel's formats; examples from its documentation, properties by hypothesis."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.facts import Unknown
from pgdyno.host.files.kernel_files import chosen, cpu_list, flag, key_values, kilobytes, number, size_bytes


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0-1,8-9", (0, 1, 8, 9)),
        ("3,1,1-2", (1, 2, 3)),
        ("", ()),
    ],
)
def test_cpu_lists_are_expanded(text: str, cpus: tuple[int, ...]) -> None:
    assert cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["a", "1-", "0-3:2", "-1", "0,,2", "0-99999999"])
def test_what_is_no_cpu_list_is_unknown(text: str) -> None:
    assert cpu_list(text) == Unknown(f'not a list of CPUs: "{text}"')


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 20)), min_size=1))
def test_any_list_of_ranges_gives_exactly_their_cpus(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(str(low) if not more else f"{low}-{low + more}" for low, more in ranges)
    expected = sorted({cpu for low, more in ranges for cpu in range(low, low + more + 1)})
    assert cpu_list(text) == tuple(expected)


@given(st.text())
def test_no_text_makes_a_parser_fail(text: str) -> None:
    with does_not_raise():
        for parse in (cpu_list, number, flag, size_bytes, kilobytes, chosen, key_values):
            parse(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("266240K", 272629760),
        ("24684092 kB", 25276510208),
        ("32M", 33554432),
        ("4096", 4096),
        ("65536k", 67108864),
    ],
)
def test_sizes_have_binary_units(text: str, size: int) -> None:
    assert size_bytes(text) == size


def test_what_is_no_size_number_or_flag_says_what_was_found() -> None:
    assert size_bytes("big") == Unknown('not a size: "big"')
    assert number("12 apples") == Unknown('not a number: "12 apples"')
    assert flag("2") == Unknown('neither 0 nor 1: "2"')
    assert kilobytes("x") == Unknown('not a number: "x"')
    assert kilobytes("128") == 131072


def test_a_reason_stays_one_short_line() -> None:
    assert number("x" * 100) == Unknown('not a number: "' + "x" * 37 + '..."')


def test_the_choice_is_the_word_in_brackets() -> None:
    assert chosen("always [madvise] never") == "madvise"
    assert chosen("none") == "none"
    assert chosen("always never") == Unknown('no choice in brackets: "always never"')


def test_the_first_of_equal_keys_counts_and_other_lines_are_left_out() -> None:
    assert key_values("flags\t: a b\nflags: c\nno colon\nempty :") == {"flags": "a b", "empty": ""}
