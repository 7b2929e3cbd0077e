"""Two machines in words and tables, for the terminal and as a page."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console
from tests.golden.synthetic import experiment
from tests.golden.synthetic_clients import experiment as of_clients
from tests.golden.synthetic_workers import experiment as of_workers
from tests.unit.results.machines.test_machine_comparison import CPU, TPS, faster, with_frequency

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.machine_comparison import Difference, MachineComparison, Weight
from pgdyno.model.variants.variant import Variant
from pgdyno.results.machines.compare_machines import render_machines
from pgdyno.results.machines.machine_comparison import compare_machines
from pgdyno.results.machines.machine_tables import (
    all_differences,
    answer,
    derived_tables,
    difference_tables,
    machine_comparison_text,
    metric_tables,
    side_line,
    withheld,
)

ALIKE = Difference("kernel", "6.1", "6.12", Weight.TENS, "another scheduler", "a paper")


def one_variant(base: Experiment) -> Experiment:
    """Return the experiment without its second variant."""
    blocks = tuple(replace(block, arms=block.arms[:1]) for block in base.blocks)
    return replace(base, variants=(Variant("default"),), blocks=blocks, verdicts=())


@pytest.fixture(scope="module")
def found() -> MachineComparison:
    base = one_variant(experiment())
    a, b = with_frequency(base, 2000.0), with_frequency(faster(base), 3000.0)
    return compare_machines(a, b, {"A": 0.5, "B": 0.25})


@pytest.fixture(scope="module")
def by_clients() -> MachineComparison:
    return compare_machines(of_clients(), faster(of_clients(), {TPS: 2.0, CPU: 0.5}))


@pytest.fixture(scope="module")
def by_workers() -> MachineComparison:
    return compare_machines(of_workers(), faster(of_workers(), {TPS: 1.5}))


def text_of(shown: MachineComparison, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(machine_comparison_text(shown))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_sides_say_which_machine_is_which_and_what_it_costs(found: MachineComparison) -> None:
    a, b = map(side_line, found.sides)
    assert a == (
        "A  Example CPU 9000 @ 2.60GHz, 8 CPUs, PostgreSQL 18.6, $0.5 per hour (2026-11-21-0930-duet-7f3a)"
    )
    assert b.endswith("PostgreSQL 18.6, $0.25 per hour (faster)")


def test_the_answer_names_workloads_by_what_was_decided(found: MachineComparison) -> None:
    assert re.fullmatch(
        r"Throughput: B is better on sysbench-read-only \(\+\d\d\.\d %\) and sysbench-read-write "
        r"\(\+\d\d\.\d %\)\.",
        answer(found).replace("\N{NO-BREAK SPACE}", " "),
    )
    worse = compare_machines(experiment(), faster(experiment(), {TPS: 0.5}))
    assert answer(worse).startswith("Throughput: B is worse on sysbench-read-only, default (\N{MINUS SIGN}")


def test_the_answer_about_clients_names_their_numbers(by_clients: MachineComparison) -> None:
    said = answer(by_clients).replace("\N{NO-BREAK SPACE}", " ")
    assert re.fullmatch(
        r"Throughput: (B is better on pgbench-select with [\d, ]+ clients \(\+\d+(\.\d)? % … \+\d+(\.\d)? %\)"
        r"|not decided on pgbench-select with [\d, ]+ clients|; )+\.",
        said,
    )


def test_each_workload_has_a_table_of_its_metrics(found: MachineComparison) -> None:
    read_only, read_write = metric_tables(found)
    assert (read_only.caption, read_write.caption) == ("sysbench-read-only", "sysbench-read-write")
    assert [column.title for column in read_only.columns] == [
        *("", "A → B", "B to A", "95\N{NO-BREAK SPACE}% interval", "B is")
    ]
    assert [row[0] for row in read_only.rows] == [
        *("throughput (tps)", "server CPU (µs per transaction)", "p99 latency (ms)")
    ]
    assert read_only.rows[0][4] == "✓ better"


def test_by_clients_there_is_a_row_for_each_number(by_clients: MachineComparison) -> None:
    (table,) = metric_tables(by_clients)
    assert table.caption == "pgbench-select, by clients; ± half of the interval's width"
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4", "6", "8"]
    assert [column.title for column in table.columns] == [
        *("clients", "throughput, A → B", "B to A", "server CPU", "client's share of CPU")
    ]
    assert table.rows[0][4] == "25\N{NO-BREAK SPACE}% → 40\N{NO-BREAK SPACE}%"
    assert "±" in table.rows[0][2]


def test_by_workers_there_is_a_row_for_each_number_in_tables_by_clients_at_once(
    by_workers: MachineComparison,
) -> None:
    alone, at_once = metric_tables(by_workers)
    assert alone.caption == "count, by workers; ± half of the interval's width"
    assert at_once.caption == "count, 2 clients at once, by workers; ± half of the interval's width"
    for table in (alone, at_once):
        assert table.columns[0].title == "workers"
        assert [row[0] for row in table.rows] == ["0", "1", "2", "3", "4"]
    assert "count, by workers" in text_of(by_workers)
    page = render_machines(by_workers)
    assert "count, by workers" in page
    assert "by clients" not in page


def test_the_answer_about_workers_names_their_numbers(by_workers: MachineComparison) -> None:
    said = answer(by_workers).replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith("Throughput: B is better on count with 0, 1, 2, 3, 4 workers (+49.")
    told = re.findall(r"2 clients at once with ([\d, ]+) workers", said)  # a level that drifted is undecided
    assert sorted(level for levels in told for level in levels.split(", ")) == ["0", "1", "2", "3", "4"]
    assert "1 clients" not in said


def test_a_single_worker_is_one() -> None:
    one = of_workers(alone={1: 10.0}, at_once={})
    said = answer(compare_machines(one, faster(one, {TPS: 1.5})))
    assert said.startswith("Throughput: B is better on count with 1 worker (+")


def test_prices_and_frequencies_have_a_table_each(found: MachineComparison) -> None:
    tables = [*derived_tables((*found.per_price, *found.per_frequency), found)]
    assert [table.caption for table in tables] == [
        "Transactions per $",
        "Throughput per GHz (per second)",
        "Server cycles for each of the transactions (thousands)",
    ]
    assert [row[0] for row in tables[0].rows] == ["sysbench-read-only", "sysbench-read-write"]


def test_differences_are_told_by_weight_and_the_unknown_apart() -> None:
    little = replace(ALIKE, subject="vm.swappiness", a="1", b="60", weight=Weight.LITTLE)
    unknown = replace(ALIKE, subject="governor", b=None, source="pgdyno's estimate")
    tables = [*difference_tables([ALIKE, unknown, little])]
    assert [(table.caption, table.rows) for table in tables] == [
        (
            "What else differs and can change it by tens of percent",
            (("kernel", "6.1", "6.12", "another scheduler"),),
        ),
        ("What else differs and matters little", (("vm.swappiness", "1", "60", "another scheduler"),)),
        (
            "Unknown on one side or both, possibly different",
            (("governor", "6.1", "unknown", "tens of percent: another scheduler (estimate)"),),
        ),
    ]
    assert [row[0] for row in all_differences([ALIKE, unknown, little]).rows] == [
        *("kernel", "vm.swappiness", "governor")
    ]
    assert all_differences([ALIKE]).rows[0][3] == "tens of percent: another scheduler (a paper)"


def test_why_nothing_is_said_is_told_once_where_the_interval_does_not_show_it() -> None:
    short = replace(one_variant(experiment()), blocks=tuple(b for b in experiment().blocks if b.round < 3))
    (reason,) = withheld(compare_machines(short, faster(short)))
    assert reason == (
        "? 6 comparisons: B: withheld: 3 rounds of started servers are too few to rule out chance, at least "
        "5 are needed"
    )


def test_nothing_in_a_name_can_steer_the_terminal() -> None:
    odd = faster(experiment(), notes=("\x1b[2J",))
    shown = text_of(compare_machines(experiment(), odd))
    assert "\x1b" not in shown
    assert "Note of B: \N{REPLACEMENT CHARACTER}[2J" in shown


@pytest.mark.parametrize("width", [60, 80, 110])
def test_tables_fit_any_terminal(found: MachineComparison, by_clients: MachineComparison, width: int) -> None:
    for shown in (found, by_clients):
        lines = text_of(shown, width).splitlines()
        assert max(map(len, lines)) <= width
        words = {word for line in lines for word in line.split()}
        figures = [cell for table in metric_tables(shown) for row in table.rows for cell in row[1:]]
        assert {word for figure in figures for word in figure.split()} <= words  # none was cut
