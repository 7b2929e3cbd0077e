"""What the processor did, as tables: counted with intervals, simulated without, and never mistaken."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.profile.view.test_profile_page import HOSTILE, PROFILE

from pgdyno.profile.records.microarchitecture import (
    DataMisses,
    Elsewhere,
    EventCount,
    HotCode,
    Mean,
    Microarchitecture,
    PageHeat,
    SlotShare,
    StructureMisses,
    TextLayout,
)
from pgdyno.profile.view.processor import processor_notes, processor_tables
from pgdyno.profile.view.profile_page import render_profiles

COUNTED = Microarchitecture(
    source="hardware counters",
    is_simulated=False,
    events=(
        EventCount("instructions", Mean(2_000_000.0, 1_900_000.0, 2_100_000.0), "instructions"),
        EventCount("L1i misses", Mean(50_000.0, 49_000.0, 51_000.0), "l1i_cache_refill", ran=0.25),
    ),
    slots=(
        SlotShare("frontend bound", 1, Mean(0.4, 0.39, 0.41)),
        SlotShare("slow: decoding", 2, Mean(0.1), "frontend bound"),
    ),
    ipc=Mean(0.75, 0.7, 0.8),
    remarks=("counters took turns",),
)
SIMULATED = Microarchitecture(
    source="simulated: callgrind 3.19.0",
    is_simulated=True,
    events=(
        EventCount("instructions", Mean(1_500_000.0), "Ir"),
        EventCount("L2 misses", Mean(30.0), "ILmr + DLmr + DLmw"),
    ),
    repeats_within=0.0012,
)
MISSES = DataMisses(
    source="simulated: a trace by lackey 3.19.0",
    transactions=135,
    instructions=37_300.0,
    structures=(
        StructureMisses("B-tree pages", 75.0, 9.0, ("_bt_compare", HOSTILE)),
        StructureMisses("others", 25.0, 3.0),
    ),
    remarks=("of one session alone",),
)
LAYOUT = TextLayout(
    program="postgres",
    source="simulated: callgrind 3.19.0",
    unit="instructions",
    is_simulated=True,
    counted=1000,
    pages=300,
    heat=(PageHeat(2, 0.9, HOSTILE), PageHeat(250, 0.1, "")),
    coverage=(HotCode(0.9, 4000, 70, 1, 1), HotCode(0.99, 5000, 90, 2, 1)),
    elsewhere=(Elsewhere("libc.so.6", 0.05),),
    remarks=("stripped",),
)


def test_what_was_counted_has_intervals_shares_of_slots_and_its_events() -> None:
    slots, events = processor_tables(replace(PROFILE, counted=COUNTED))
    assert slots.rows == (
        ("frontend bound", "40.0\xa0%", "39.0 … 41.0 %"),
        ("of it, slow: decoding", "10.0\xa0%", "–"),
    )
    assert events.rows == (
        ("instructions", "2,000,000", "1,900,000 … 2,100,000", "–", "instructions"),
        ("L1i misses", "50,000", "49,000 … 51,000", "25.00", "l1i_cache_refill, 25% of the time"),
        ("instructions per cycle", "0.75", "0.70 … 0.80", "–", "–"),
    )
    assert events.caption.endswith("counted")


def test_what_was_simulated_is_called_so_and_has_no_interval() -> None:
    profile = replace(PROFILE, simulated=SIMULATED)
    [events] = processor_tables(profile)
    assert events.caption.endswith("simulated")
    assert events.rows == (
        ("instructions", "1,500,000", "–", "Ir"),
        ("L2 misses", "30.0", "0.02", "ILmr + DLmr + DLmw"),
    )
    assert events.columns[0].title == "Simulated"
    assert "simulated: the instructions of two equal runs differed by 0.120%" in [*processor_notes(profile)]


def test_data_misses_by_structure_add_up_and_are_called_simulated() -> None:
    [table] = processor_tables(replace(PROFILE, data_misses=MISSES))
    assert table.caption == "Data misses by structure, simulated, per transaction"
    assert table.columns[0].title == "Simulated"
    assert table.rows == (
        ("B-tree pages", "75.0", "75.0\xa0%", "9.0", "75.0\xa0%", f"_bt_compare, {HOSTILE}"),
        ("others", "25.0", "25.0\xa0%", "3.0", "25.0\xa0%", "–"),
        ("all data misses", "100", "100.0\xa0%", "12.0", "100.0\xa0%", "–"),
    )
    assert table.totals == 1


def test_how_far_the_trace_is_from_callgrinds_count_is_said() -> None:
    misses = EventCount("L1d misses", Mean(80.0), "D1mr + D1mw")
    counted = replace(SIMULATED, events=(SIMULATED.events[0], misses))
    said = [*processor_notes(replace(PROFILE, simulated=counted, data_misses=MISSES))]
    source, callgrind, limits = said[-3:]
    assert source == "Data misses by structure: simulated: a trace by lackey 3.19.0; 135 transactions"
    assert callgrind == (
        "simulated: the trace has 37,300 instructions and 100 L1d misses per transaction; callgrind's "
        "longer run has 1,500,000 and 80.0: in the trace, rarely executed prepared statements are still "
        "planned each time"
    )
    assert limits == "of one session alone"


def test_a_session_without_misses_has_no_shares() -> None:
    nothing = replace(MISSES, structures=(StructureMisses("B-tree pages", 2.0, 0.0),))
    [table] = processor_tables(replace(PROFILE, data_misses=nothing))
    assert table.rows[0] == ("B-tree pages", "2.0", "100.0\xa0%", "0.0", "–", "–")
    assert table.rows[1][3:5] == ("0.0", "–")


def test_a_profile_without_either_has_no_tables() -> None:
    assert [*processor_tables(PROFILE)] == []
    assert [*processor_notes(PROFILE)] == []


def test_a_page_shows_strips_and_tables_and_runs_nothing() -> None:
    found = replace(PROFILE, counted=COUNTED, simulated=SIMULATED, data_misses=MISSES, layouts=(LAYOUT,))
    page = render_profiles((found,))
    assert "<script>" not in page
    assert "mostly &lt;script&gt;" in page
    assert page.index('id="profile-1"') < page.index('id="code"') < page.index('id="notes"')
    assert "top-down, counted" in page
    assert "for a transaction, simulated" in page
    assert "Data misses by structure, simulated" in page
