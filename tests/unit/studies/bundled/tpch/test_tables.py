"""What is shown of a workload like TPC-H's, on the terminal, the page and as JSON."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.golden.synthetic_tpch import NAMES, experiment

from pgdyno.measure.view.repeat import repeat_command
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.variants.variant import Variant
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.studies.bundled.tpch.tables import lines, plan_comparisons, time_text

NBSP = "\N{NO-BREAK SPACE}"
NOT_COMPARABLE = "not a TPC-H result, and not comparable with published TPC-H results"


def printed(of: Experiment, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(verdict_table(of))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace(NBSP, " ")


def test_times_are_the_inverse_of_rates_and_their_ratio_that_of_the_verdicts() -> None:
    q1 = lines(experiment())[0]
    assert (q1.name, q1.is_time) == ("q1", True)
    default, big = q1.figures
    assert default is not None
    assert big is not None
    assert (default.mean, big.mean) == pytest.approx((0.125, 0.0625))
    assert big.bounds is not None
    assert big.bounds[0] < 0.0625 < big.bounds[1]
    (relative,) = q1.relative
    assert relative.ratio == pytest.approx(0.5)
    assert relative.interval is not None
    assert relative.interval.low < 0.5 < relative.interval.high
    assert relative.verdict is not None
    assert relative.verdict.decision is Decision.BETTER


def test_runs_are_counted_per_hour_and_more_is_better() -> None:
    power, throughput = lines(experiment())[-2:]
    assert [(line.name, line.is_time) for line in (power, throughput)] == [
        ("power", False),
        ("throughput", False),
    ]
    assert [round(one.mean) for one in throughput.figures if one] == [72_000, 108_000]
    assert throughput.relative[0].ratio == pytest.approx(1.5)
    assert [round(one.mean) for one in power.figures if one] == [28_800, 28_800]


def test_a_void_pass_does_not_count() -> None:
    q6 = lines(experiment())[5]
    assert [one.rounds for one in q6.figures if one] == [5, 5]


def test_the_table_has_a_row_per_query_and_says_first_what_it_is_not() -> None:
    shown = printed(experiment())
    assert "TPC-H-like: not a TPC-H result" in shown.split("Times, geometric mean")[0]
    rows = {line.split()[0]: line for line in shown.splitlines() if line.strip()}
    assert [name for name in NAMES if name.startswith(("q", "rf")) and name not in rows] == []
    assert " ".join(rows["q1"].split()[:8]) == "q1 125 ms 62.5 ms 0.50 ✓ ±1.5%"
    (run,) = (line.split() for line in shown.splitlines() if line.startswith("throughput run"))
    assert run[2:] == ["(queries/h)", "72,000", "108,000", "1.50", "✓", "±1.5%"]
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_queries_that_are_alike_are_not_listed_in_the_answer() -> None:
    answer = printed(experiment(), 200).splitlines()[1]
    assert answer == "Better on q1 and throughput; no difference that matters on power."


def test_five_variants_lose_no_figure_on_a_narrow_terminal() -> None:
    found = experiment()
    names = ("w1", "w2", "w3", "w4")
    wide = replace(
        found,
        variants=(found.variants[0], *map(Variant, names)),
        blocks=tuple(
            replace(block, arms=(block.arms[0], *(replace(block.arms[1], variant=name) for name in names)))
            for block in found.blocks
        ),
        verdicts=tuple(replace(verdict, variant=name) for name in names for verdict in found.verdicts),
    )
    shown = printed(wide)
    assert "…" not in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    heads = [line.split() for line in shown.splitlines() if line.split()[:1] == ["default"]]
    assert heads[:2] == [
        ["default", "w1", "relative", "w2", "relative"],
        ["default", "w3", "relative", "w4", "relative"],
    ]
    assert heads[2:] == [["default", name, "relative"] for name in names]  # of the runs, with longer names
    # q1 takes 125 ms with the baseline and 62.5 ms with each of the others.
    assert (shown.count("q1    125 ms  62.5 ms  0.50 ✓"), shown.count("62.5 ms  0.50 ✓")) == (2, 4)
    roomy = printed(wide, 200)
    assert len([line for line in roomy.splitlines() if line.split()[:1] == ["default"]]) == 2


def test_long_names_become_letters_with_a_legend() -> None:
    long = "work_mem.64MB-max_parallel_workers_per_gather.2"
    found = experiment()
    renamed = replace(
        found,
        variants=(found.variants[0], Variant(long)),
        blocks=tuple(
            replace(block, arms=(block.arms[0], replace(block.arms[1], variant=long)))
            for block in found.blocks
        ),
        verdicts=tuple(replace(verdict, variant=long) for verdict in found.verdicts),
    )
    shown = printed(renamed)
    assert f"A: default\nB: {long}\n" in shown
    assert "q1   125 ms  62.5 ms" in shown


def test_one_variant_alone_has_times_and_no_ratios() -> None:
    found = experiment()
    alone = replace(
        found,
        variants=found.variants[:1],
        verdicts=(),
        blocks=tuple(replace(block, arms=block.arms[:1]) for block in found.blocks),
    )
    shown = printed(alone)
    assert "relative" not in shown
    assert "q22   125 ms" in shown
    assert "Plans" not in shown


def test_plans_that_differ_are_told_by_query_with_what_differs() -> None:
    (one,) = plan_comparisons(experiment())
    assert (one.query, one.variant) == ("q1", "big")
    assert one.kinds == ("0 → 2 workers", "other nodes")
    assert "q1, big: 0 → 2 workers, other nodes" in printed(experiment())
    assert "- Aggregate (Sorted)" in one.lines
    assert "+ Gather (2 workers)" in one.lines


def test_the_page_has_times_plans_and_the_disclaimer_and_folds_the_trials() -> None:
    page = render_page(experiment())
    assert NOT_COMPARABLE in page
    assert "Plans that differ from those of default" in page
    assert "+ Gather (2 workers)" in page
    assert "0 → 2 workers, other nodes" in page
    assert page.count('<details class="step">') == len(NAMES)
    assert "a copy of the data as loaded" in page
    assert "empty database" not in page


def test_the_page_says_how_to_repeat_it() -> None:
    assert repeat_command(experiment()) == (
        "pgdyno run tpch --embedded --factor work_mem=4MB,64MB --scale 0.1 --blocks 6 --seed 20261121 "
        "--clients 2 --no-isolate"
    )


def test_the_document_has_every_execution_with_its_interval() -> None:
    document = comparison_document(experiment())["tpch"]
    assert isinstance(document, dict)
    assert NOT_COMPARABLE in str(document["disclaimer"])
    executions = document["executions"]
    assert isinstance(executions, list)
    assert [one["name"] for one in executions if isinstance(one, dict)] == [*NAMES]
    first = executions[0]
    assert isinstance(first, dict)
    assert first["unit"] == "s"
    (relative,) = first["relative"]
    assert relative["verdict"] == "better"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "12.3 ms"), (0.9994, "999 ms"), (1.5, "1.50 s"), (123.4, "123 s")]
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert time_text(seconds).replace(NBSP, " ") == text
