"""Lists of CPUs as the kernel writes them."""

from __future__ import annotations

import pytest

from pgdyno.host.cpu_list import format_cpu_list, parse_cpu_list


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        ("0", (0,)),
        ("0-3,8", (0, 1, 2, 3, 8)),
        ("8, 0-1", (0, 1, 8)),
        ("2-1", ()),
        ("0-2,1-3", (0, 1, 2, 3)),
        ("65535", (65535,)),
    ],
)
def test_ranges_and_single_cpus_are_read_in_order(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["x", "0-", "-1", "0,,1", "0:1", "65536", "0-65536", "٣"])
def test_any_other_text_is_no_list(text: str) -> None:
    assert parse_cpu_list(text) is None


@pytest.mark.parametrize(
    ("cpus", "text"), [((), ""), ((5,), "5"), ((0, 1, 2, 8), "0-2,8"), ((1, 3, 4), "1,3-4")]
)
def test_neighbours_are_written_as_a_range(cpus: tuple[int, ...], text: str) -> None:
    assert format_cpu_list(cpus) == text
