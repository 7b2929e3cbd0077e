"""A session beside another one on its CPU: the table, and what is to be learnt from it."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.report.profiles.test_processor import MISSES
from tests.unit.report.profiles.test_profile_page import PROFILE

from pgdyno.model.profiles.data_misses import MissesInTurns, SessionsInTurns
from pgdyno.report.profiles.processor import processor_tables
from pgdyno.report.profiles.profile_page import render_profiles
from pgdyno.report.profiles.turns_table import in_turns_table

IN_TURNS = SessionsInTurns(
    turns=16.0,
    structures=(
        MissesInTurns("session's own memory (malloc)", 50.0, 250.0, 0.5, 0.25),
        MissesInTurns("buffer descriptors", 10.0, 20.5, 3.0, 3.0),
        MissesInTurns("others", 40.0, 39.0, 8.0, 9.5),
    ),
)


def test_additional_misses_are_shown_by_structure_and_add_up() -> None:
    table = in_turns_table(IN_TURNS)
    assert table.caption == (
        "Data misses of a session beside another one on its CPU, simulated, per transaction"
    )
    assert table.rows == (
        ("session's own memory (malloc)", "50", "250", "+200", "0.5", "0.25", "−0.25"),
        ("buffer descriptors", "10", "20.5", "+10.5", "3", "3", "0"),
        ("others", "40", "39", "−1", "8", "9.5", "+1.5"),
        ("all data misses", "100", "310", "+210", "11.5", "12.8", "+1.25"),
    )
    assert table.totals == 1


def test_the_lesson_is_one_sentence_with_the_figures_and_what_to_do() -> None:
    assert in_turns_table(IN_TURNS).lesson == (
        "simulated: a session that leaves its CPU to another one 16 times in a transaction, whenever it "
        "waits for its client, finds less of its data in L1d, +210 misses per transaction "
        "(L2: +1.25), most of them in session's own memory (malloc) and buffer descriptors: this is a part "
        "of the price of more busy sessions than CPUs, which a connection pool keeps lower"
    )


def test_the_lesson_of_a_writing_session_counts_its_waits_for_the_disk() -> None:
    lesson = in_turns_table(replace(IN_TURNS, turns=21.5, flushes=1.5)).lesson
    assert (
        " 21.5 times in a transaction, whenever it waits for its client or, 1.5 times, for WAL to be "
        in lesson
    )
    once = in_turns_table(replace(IN_TURNS, turns=8.0, flushes=1.0)).lesson
    assert " waits for its client or, once, for WAL to be on the disk, finds less " in once


def test_a_session_that_loses_nothing_to_the_other_names_no_structure() -> None:
    same = SessionsInTurns(1.0, (MissesInTurns("stack", 4.0, 4.0, 1.0, 1.0),))
    assert " once in a transaction, " in in_turns_table(same).lesson
    assert ", 0 misses per transaction (L2: 0): this is" in in_turns_table(same).lesson
    assert in_turns_table(SessionsInTurns(1.0, ())).rows == (
        ("all data misses", "0", "0", "0", "0", "0", "0"),
    )


def test_the_page_has_the_lesson_below_its_table() -> None:
    profile = replace(PROFILE, data_misses=replace(MISSES, in_turns=IN_TURNS))
    by_structure, beside = processor_tables(profile)
    assert beside.caption.startswith("Data misses of a session beside")
    page = render_profiles((profile,))
    assert (
        page.index(by_structure.caption) < page.index(beside.caption) < page.index("which a connection pool")
    )
