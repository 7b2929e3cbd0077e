"""Elements in shared memory: the table, and what is to be learnt from it."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.report.profiles.test_processor import MISSES
from tests.unit.report.profiles.test_profile_page import PROFILE

from pgdyno.model.profiles.element_layout import ElementLayout
from pgdyno.report.profiles.processor import processor_tables

DESCRIPTOR = ElementLayout("buffer descriptors", ("BufferDesc",), 64, 4, 0, 64, 1, 1)
LOCK = ElementLayout("lock tables", ("HASHELEMENT", "LOCK"), 1168, 8, 4, 64, 3, 4)


def test_elements_are_shown_with_their_lines_and_who_shares_them() -> None:
    profile = replace(PROFILE, data_misses=replace(MISSES, elements=(DESCRIPTOR, LOCK)))
    _, table = processor_tables(profile)
    assert table.caption == "Elements in shared memory and lines of 64 B, from debug information"
    assert table.rows == (
        ("buffer descriptors", "BufferDesc", "64", "0", "4", "1", "no"),
        ("lock tables", "HASHELEMENT + LOCK", "1,168", "4", "8", "3 to 4", "yes"),
    )
    assert table.lesson == (
        "an element that shares a line with its neighbour (here LOCK) leaves a CPU's cache also when another "
        "CPU writes to the neighbour alone (false sharing), which no simulation of one CPU counts"
    )


def test_where_none_shares_a_line_that_is_said() -> None:
    profile = replace(PROFILE, data_misses=replace(MISSES, elements=(DESCRIPTOR,)))
    _, table = processor_tables(profile)
    assert "(here none)" in table.lesson
