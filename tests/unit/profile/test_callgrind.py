"""Callgrind's counts. The lines were recorded: PostgreSQL 18, valgrind 3.19, x86-64; shortened."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import MeasurementError
from pgdyno.profile.callgrind import TAKEN, SimulatedRun, of_simulation, parse_callgrind, spread

RECORDED = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 22865
cmd:  /opt/bin/postgres -D /data -c port=5499

desc: I1 cache: 65536 B, 64 B, 16-way associative

positions: instr
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim
summary: 47234491 11018943 13326925

ob=/opt/bin/postgres
fl=???
fn=index_getnext_tid
0x56e36e 8173
cob=/opt/bin/postgres
cfn=btgettuple
calls=8173 0x578c10
0x56e36f 4880001 1378481 963651 51889
0x56e370 8173 0 8173
fn=btgettuple
0x578c10 8173 0 8173 77 0 0 1
0x578c12 8173
jcnd=173/8173 0x578c10
0x578c12
jump=20 0x578c10
0x578c12
fn=btgettuple'2
0x578c10 1 0 1

ob=???
fn=0x0000000004a2b000
0x4a2b000 7

totals: 32701 11 16347 77
"""


def test_instructions_are_counted_where_they_are_and_calls_are_not_counted_twice() -> None:
    found = parse_callgrind(RECORDED.splitlines())
    program = "/opt/bin/postgres"
    assert found.executed == {
        program: {0x56E36E: 8173, 0x56E370: 8173, 0x578C10: 8174, 0x578C12: 8173},
        "": {0x4A2B000: 7},
    }
    assert found.functions[program][0x56E36E] == "index_getnext_tid"
    assert found.functions[program][0x578C10] == "btgettuple"
    assert {name: found.totals[name] for name in ("Ir", "Dr", "Dw", "I1mr", "Bim")} == {
        "Ir": 32701,
        "Dr": 11,
        "Dw": 16347,
        "I1mr": 77,
        "Bim": 0,
    }
    assert found.totals[TAKEN] == 173 + 20 + 2 * 8173


def test_the_additional_work_of_a_longer_session() -> None:
    head = "positions: instr\nevents: Ir Bc\nob=/p\nfn=f\n"
    shorter = parse_callgrind(f"{head}0x10 5\n0x14 2\ntotals: 7 1\n".splitlines())
    longer = parse_callgrind(f"{head}0x10 25\n0x14 2\n0x18 4\ntotals: 31 5\n".splitlines())
    added = longer.since(shorter)
    assert added.totals == {"Ir": 24, "Bc": 4, TAKEN: 0}
    assert added.executed == {"/p": {0x10: 20, 0x14: 0, 0x18: 4}}


def test_figures_are_per_transaction_and_say_how_well_they_repeat() -> None:
    head = "positions: instr\nevents: Ir Bc Bcm Bi Bim\nob=/p\nfn=f\n0x10 1\njcnd=12/40 0x20\n0x10\n"
    runs = [
        SimulatedRun(parse_callgrind(f"{head}totals: {total} 40 4 10 6\n".splitlines()), 10)
        for total in (2000, 2010)
    ]
    found = of_simulation("simulated: callgrind 3.19.0", runs, ["a remark"])
    assert {one.name: one.per_transaction.value for one in found.events} == {
        "instructions": 200.5,
        "branches": 5.0,
        "taken branches": 1.2,
        "branch mispredictions": 1.0,
        "conditional branches mispredicted": 0.4,
        "indirect branches mispredicted": 0.6,
    }
    assert found.is_simulated
    assert found.repeats_within == pytest.approx(0.005)
    assert found.remarks[0].startswith("simulated: a single session")
    assert found.remarks[1:] == ("a remark",)
    assert spread([1.0]) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("positions: line\nevents: Ir\n", "callgrind's output has no addresses"),
        ("positions: instr\nevents: Ir\nob=/p\n0x10 5\n", "callgrind's output is incomplete"),
        ("", "callgrind's output is incomplete"),
    ],
)
def test_output_that_is_not_what_was_asked_for_is_an_error(text: str, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        parse_callgrind(text.splitlines())
