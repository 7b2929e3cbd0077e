"""The accelerator's study as the published table."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console
from tests.golden.synthetic import experiment as of_a_plan

from pgdyno.measure.view.cards import before_and_after
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.model.variants.variant import Variant
from pgdyno.results.verdict_text import verdict_table

RATES = {
    "sysbench-read-only": {"default": 8000.0, "application": 12000.0, "plan": 14000.0},
    "sysbench-read-write": {"default": 5000.0, "application": 5000.0, "plan": 9000.0},
}
GAINS = {("sysbench-read-only", "application"): 1.5, ("sysbench-read-only", "plan"): 1.75,
         ("sysbench-read-write", "plan"): 1.8}  # fmt: skip


def study(decision: Decision = Decision.BETTER) -> Experiment:
    """Return the study in one block of each workload; gains have intervals of ±1 %."""
    base = of_a_plan()
    blocks = tuple(
        Block(workload, 0, 0, 0, tuple(ArmBlock(n, 9, 3.0, {THROUGHPUT: r}) for n, r in rates.items()))
        for workload, rates in RATES.items()
    )
    verdicts = tuple(
        Verdict(
            workload, THROUGHPUT, variant, "default", decision, "", gain,
            Interval(gain - 0.01, gain, gain + 0.01, 0.95), None, None, None, 5, 5, 0,
        )
        for (workload, variant), gain in GAINS.items()
    )  # fmt: skip
    return replace(
        base,
        name="accelerator-study",
        variants=tuple(map(Variant, RATES["sysbench-read-only"])),
        workloads=tuple(RATES),
        blocks=blocks,
        verdicts=verdicts,
    )


def rows(experiment: Experiment) -> list[list[str]]:
    table = before_and_after(experiment)
    assert table is not None
    return [[cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in table.rows]


def test_rows_are_configurations_and_the_gain_and_a_column_is_a_workload() -> None:
    table = before_and_after(study())
    assert table is not None
    assert table.caption == "Transactions per second before and after, and the gain over default"
    assert [column.title for column in table.columns] == ["", "sysbench-read-only", "sysbench-read-write"]
    assert rows(study()) == [
        ["before: default", "8,000", "5,000"],
        ["application", "12,000", "5,000"],
        ["after: plan", "14,000", "9,000"],
        ["gain", "+75.0 %", "+80.0 %"],
        ["95 % interval", "+74.0 % … +76.0 %", "+79.0 % … +81.0 %"],
        ["verdict", "✓ better", "✓ better"],
    ]


def test_layers_between_before_and_after_are_explained() -> None:
    layered, whole = study(), study()
    whole = replace(whole, variants=(whole.variants[0], whole.variants[-1]))
    tables = [before_and_after(one) for one in (layered, whole)]
    assert [table.lesson for table in tables if table] == [
        "Between before and after, each row has one layer of the plan more than the row above it.",
        "",
    ]


def test_a_gain_of_which_nothing_is_known_is_no_figure() -> None:
    unknown = study()
    first, *others = unknown.verdicts
    few = tuple(
        replace(one, effect=None, interval=None, decision=Decision.INCONCLUSIVE) for one in others[:1]
    )
    assert rows(replace(unknown, verdicts=(first, *few)))[3:] == [
        ["gain", "–", "–"],
        ["95 % interval", "–", "–"],
        ["verdict", "? inconclusive", "–"],
    ]
    assert len(rows(replace(unknown, verdicts=()))) == 3


def test_the_table_stands_in_the_text_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=False, color_system=None)
    console.print(verdict_table(study()))
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert "before: default               8,000                5,000" in lines
    assert "after: plan                  14,000                9,000" in lines


def test_other_studies_have_no_such_table() -> None:
    assert before_and_after(of_a_plan()) is None
    assert before_and_after(replace(study(), blocks=(), verdicts=())) is None
