"""Rates of all steps side by side: cells written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment as without_steps
from tests.golden.synthetic_steps import PREFIX
from tests.golden.synthetic_steps import experiment as of_ten_steps

from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.step_record import StepRecord
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.model.variants.variant import Variant
from pgdyno.report.elements.tables import StyledCell, StyledTable
from pgdyno.studies.bundled.insert_benchmark.rate_tables import (
    background_table,
    rate_table,
    relative_table,
    step_results,
)

NBSP = "\N{NO-BREAK SPACE}"
LOAD, QUERY = f"{PREFIX}l.i0", f"{PREFIX}qr100"


def arm(variant: str, rate: float, reached: float | None = None) -> ArmBlock:
    values = {"throughput_tps": rate} | ({} if reached is None else {"background_rate_share": reached})
    record = StepRecord("queries", 100, 1.0, 0.0, target_rows_per_s=None if reached is None else 200.0)
    return ArmBlock(variant, 100, 1.0, values, record)


def verdict(workload: str, decision: Decision, bounds: tuple[float, float, float] | None) -> Verdict:
    interval = Interval(*bounds, 0.95) if bounds else None
    return Verdict(
        workload=workload,
        metric="throughput_tps",
        variant="18",
        baseline="17",
        decision=decision,
        reason="",
        effect=bounds[1] if bounds else None,
        interval=interval,
        mde=None,
        p_value=None,
        p_adjusted=None,
        rounds=2,
        blocks=2,
        void_blocks=0,
    )


def comparison(
    reached: tuple[float, float] = (0.99, 0.98), verdicts: Sequence[Verdict] | None = None
) -> Experiment:
    """Return two steps on two servers; the baseline is the second of the variants."""
    blocks = (
        Block(LOAD, 0, 0, 1, (arm("18", 900.0), arm("17", 1000.0))),
        Block(LOAD, 1, 0, 3, (arm("18", 1600.0), arm("17", 4000.0))),
        Block(LOAD, 2, 0, 5, (arm("18", 9.0), arm("17", 9.0)), void="noise"),
        Block(QUERY, 0, 0, 2, (arm("18", 20.0, reached[1]), arm("17", 10.0, reached[0]))),
    )
    usual = (
        verdict(LOAD, Decision.WORSE, (0.512, 0.601, 0.704)),
        verdict(QUERY, Decision.INCONCLUSIVE, None),
    )
    return replace(
        without_steps(),
        variants=(Variant("18"), Variant("17")),
        baseline="17",
        workloads=(LOAD, QUERY),
        operations={LOAD: "rows", QUERY: "queries"},
        blocks=blocks,
        verdicts=tuple(usual if verdicts is None else verdicts),
    )


def row(table: StyledTable | None, name: str) -> tuple[StyledCell, ...]:
    assert table is not None
    return dict(table.rows)[name]


def test_rates_are_geometric_means_over_the_rounds_that_count_the_baseline_first() -> None:
    table = rate_table(comparison())
    assert table.heads == (StyledCell("l.i0", "rows/s"), StyledCell("qr100", "queries/s"))
    assert table.rows == (
        ("17", (StyledCell("2,000", narrow="2,000"), StyledCell("10.0", narrow="10.0"))),
        ("18", (StyledCell("1,200", narrow="1,200"), StyledCell("20.0", narrow="20.0"))),
    )


def test_ratio_stands_with_its_interval_and_the_sign_of_its_decision() -> None:
    table = relative_table(comparison())
    assert row(table, "17") == (StyledCell("1"), StyledCell("1"))
    assert row(table, "18") == (
        StyledCell("0.60 ✗", "0.51–0.70", "worse", narrow_note="±17%"),
        StyledCell("–"),
    )


@pytest.mark.parametrize(
    ("decision", "expected"),  # √(1.08 / 1.02) is 1.029
    [
        (Decision.BETTER, StyledCell("1.05 ✓", "1.02–1.08", "better", narrow_note="±2.9%")),
        (Decision.EQUIVALENT, StyledCell("1.05 =", "1.02–1.08", "equivalent", narrow_note="±2.9%")),
        (Decision.INCONCLUSIVE, StyledCell("1.05 ?", "1.02–1.08", "inconclusive", narrow_note="±2.9%")),
    ],
)
def test_colour_follows_the_decision_not_the_size_of_the_ratio(
    decision: Decision, expected: StyledCell
) -> None:
    table = relative_table(comparison(verdicts=[verdict(LOAD, decision, (1.02, 1.05, 1.08))]))
    assert row(table, "18")[0] == expected


def test_ratio_without_an_interval_says_so() -> None:
    one = replace(verdict(LOAD, Decision.INCONCLUSIVE, (1.0, 1.1, 1.2)), interval=None)
    assert row(relative_table(comparison(verdicts=[one])), "18")[0] == StyledCell(
        "1.10 ?", "no interval", "inconclusive"
    )


def test_missed_cell_has_no_ratio_and_is_marked_in_the_other_tables() -> None:
    missed = comparison(reached=(0.99, 0.946))
    assert row(relative_table(missed), "18")[1] == StyledCell("missed", f"at 95{NBSP}%", "missed")
    assert row(rate_table(missed), "18")[1] == StyledCell("20.0", "missed", "missed", "20.0")
    assert row(background_table(missed), "18") == (StyledCell(f"94.6{NBSP}%", "missed", "missed"),)


def test_one_pass_below_the_rate_makes_a_cell_missed_whatever_the_mean_is() -> None:
    kept = comparison()
    worst = Block(QUERY, 1, 0, 4, (arm("18", 20.0, 0.76), arm("17", 10.0, 0.99)))
    others = [Block(QUERY, r, 0, 4 + r, (arm("18", 20.0, 1.0), arm("17", 10.0, 0.99))) for r in range(2, 8)]
    mixed = replace(kept, blocks=(*kept.blocks, worst, *others))
    assert row(relative_table(mixed), "18")[1] == StyledCell("missed", f"at 76{NBSP}%", "missed")
    # (0.98 + 0.76 + 6 × 1) / 8
    assert row(background_table(mixed), "18") == (StyledCell(f"96.8{NBSP}%", "missed", "missed"),)


def test_nothing_is_compared_with_a_baseline_that_missed_its_rate() -> None:
    table = relative_table(comparison(reached=(0.5, 0.99)))
    assert row(table, "17")[1] == StyledCell("missed", f"at 50{NBSP}%", "missed")
    assert row(table, "18")[1] == StyledCell("–", "17 missed", "missed")


def test_background_table_has_the_steps_that_have_a_rate_and_their_targets() -> None:
    table = background_table(comparison())
    assert table is not None
    assert table.heads == (StyledCell("qr100"),)
    assert table.rows == (
        ("17", (StyledCell(f"99.0{NBSP}%"),)),
        ("18", (StyledCell(f"98.0{NBSP}%"),)),
        ("target, rows/s", (StyledCell("200"),)),
    )


def test_steps_without_background_have_no_table_of_it() -> None:
    assert background_table(replace(comparison(), workloads=(LOAD,))) is None


def test_an_experiment_without_steps_has_no_results_by_step() -> None:
    assert step_results(without_steps()) == ()


def test_other_metrics_are_related_to_the_baseline_in_the_same_way() -> None:
    table = relative_table(of_ten_steps(), "server_cpu_us_per_transaction")
    assert table.title == "Server CPU per operation"
    assert table.caption == f"Relative to 17 = 1, with the 95{NBSP}% interval; lower is better"
    (missed,) = {row(table, name)[9] for name in ("18-sync", "18-worker", "18-io_uring")}
    assert missed == StyledCell("–", "17 missed", "missed")
