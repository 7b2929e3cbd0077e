"""Findings of a grid: on the page, on a terminal, and as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from tests.golden.synthetic_clients import experiment as by_clients
from tests.golden.synthetic_loop import experiment as in_loops
from tests.golden.synthetic_workers import experiment as by_workers
from tests.unit.measure.verdicts.test_transaction_split import KEPT, on_both
from tests.unit.results.test_page import Outline

from pgdyno.measure.verdicts.scaling import ScalingCurve
from pgdyno.measure.verdicts.transaction_split import SharedLevel, SharingCost
from pgdyno.measure.view.wording import answers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.scaling import Confirmation, Dip, Knee, Law, Level, Scaling
from pgdyno.model.experiments.verdict import Interval
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.studies.grids.findings import scaling, sharing, what_to_set

NBSP = "\N{NO-BREAK SPACE}"
INTERVAL = Interval(0.08, 0.1, 0.12, 0.95)
CAPTION = "pgbench-select: the cost of sharing tables"
ALL = "100\N{NO-BREAK SPACE}%"
COSTS = f"Sharing has a cost at 2, 3, 4, 6 and 8 clients: the interval is below {ALL}"
AT_FOUR = f"Sharing has a cost at 4 clients: the interval is below {ALL}"
BETTER = "shared tables scale better than own ones, because of caches or by chance"


def printed(of: Experiment, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(verdict_table(of))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().replace(NBSP, " ").splitlines()]


def to_set(of: Experiment) -> tuple[str, ...]:
    found = what_to_set(of)
    assert found is not None
    return tuple(one.replace(NBSP, " ") for one in found.sentences)


def test_a_number_is_said_with_its_certainty_and_its_cost() -> None:
    first, *besides = to_set(by_workers())
    alone, others = first.split("; ")
    assert alone == (
        "count by itself: 1 worker, at least 95 % of any other number's rate (confirmed by fresh rounds)"
    )
    assert others.startswith("2 clients at once: 73")
    assert others.endswith(" of their highest, with 0 workers")
    assert len(besides) == 2
    found = what_to_set(by_workers())
    assert found is not None
    assert found.statements == ("SET max_parallel_workers_per_gather = 1;  -- count",)


def test_others_may_do_best_with_the_same_number() -> None:
    (first, *_) = to_set(by_workers(at_once={0: 8.0, 1: 11.0, 2: 9.0}))
    assert first.endswith("; 2 clients at once: the best for them too")


def test_settings_that_were_on_for_it_are_part_of_the_statement() -> None:
    found = what_to_set(by_workers("partition-wise"))
    assert found is not None
    assert found.statements == (
        (
            "SET max_parallel_workers_per_gather = 1; SET enable_partitionwise_join = on; "
            "SET enable_partitionwise_aggregate = on;  -- partition-wise"
        ),
    )


def test_what_else_limits_a_number_is_said_of_queries_or_of_builds() -> None:
    assert to_set(by_workers())[-1].startswith("max_parallel_workers_per_gather is an upper limit: ")
    assert to_set(by_workers("create-index"))[-1].startswith("max_parallel_maintenance_workers is an upper ")


def test_an_uncertain_number_is_no_statement() -> None:
    unsure = by_workers(alone={0: 10.0, 1: 10.2, 2: 10.4}, noise=0.2)
    assert to_set(unsure) == (
        "count: the best number is not certain yet (0 or more); --budget for more rounds",
    )
    found = what_to_set(unsure)
    assert found is not None
    assert found.statements == ()


def test_the_terminal_the_page_and_the_json_have_it_and_not_for_clients() -> None:
    outline = Outline(render_page(by_workers()))
    assert outline.errors == []
    for text in (outline.text, "\n".join(printed(by_workers(), 200))):
        assert "What to set" in text
        assert "SET max_parallel_workers_per_gather = 1; -- count" in " ".join(text.split())
    document = json.loads(json.dumps(comparison_document(by_workers())))
    assert [(one["load"], one["workers"]) for one in document["degree_settings"]] == [("count", 1)]
    assert what_to_set(by_clients()) is None
    assert "What to set" not in render_page(by_clients())


def scaling_of(**parts: object) -> Scaling:
    levels = tuple(Level(one, 5, 100.0, Interval(1, 1, 1, 0.95), None) for one in (1, 8, 32))
    whole = Scaling(levels, 8, Knee(4, 6, 0.05), None, (), (), None)
    return replace(whole, **parts)  # type: ignore[arg-type]


def said(of: Scaling, confirmation: Confirmation | None = None) -> list[str]:
    curve = ScalingCurve("select", 1 << 20, "clients", of, confirmation, {})
    return [one.replace(NBSP, " ") for one in scaling(curve, "").sentences]


def test_a_knee_between_two_levels_is_said_as_such() -> None:
    knee, highest = said(scaling_of())[:2]
    assert knee.startswith("Knee: between 4 and 6 clients, the smallest measured number with at least 95 %")
    assert highest == "Highest at 8; no higher number was proven to be worse"
    assert said(scaling_of(knee=Knee(2, None, 0.05)))[0].startswith("Knee: 2 or more clients")
    assert said(scaling_of(knee=Knee(1, 1, 0.05)))[0].startswith("Knee: 1 client, the smallest")
    assert said(scaling_of(worse_from=12))[1] == "Highest at 8; significantly worse from 12 on"


def test_a_recommendation_is_said_with_what_fresh_rounds_say_of_it() -> None:
    ratio = Interval(0.97, 1.02, 1.07, 0.95)
    assert said(scaling_of(), Confirmation(1, 8, ratio, 5, is_confirmed=True))[1] == (
        "Recommended: 1 client, confirmed in 5 rounds not used for the choice: "
        "at least 97 % of any other level's rate"
    )
    ratio = Interval(0.9, 0.96, 1.02, 0.95)
    assert said(scaling_of(), Confirmation(4, 8, ratio, 5, is_confirmed=False))[1] == (
        "4 clients seemed sufficient, but 5 rounds not used for the choice do not confirm 95 %: "
        "96 % (90 % … 102 %) of the rate at 8"
    )


def test_a_law_that_fits_is_named_with_its_terms() -> None:
    amdahl = Law("Amdahl", INTERVAL, None, None, 0.4)
    usl = Law("USL", INTERVAL, Interval(0.001, 0.002, 0.003, 0.95), 21.2, 0.6)
    assert said(scaling_of(laws=(amdahl, usl), law="Amdahl"))[-1] == (
        "Amdahl's law fits from 1 to 32 clients: contention 10 % (8 % … 12 %)"
    )
    assert said(scaling_of(laws=(amdahl, usl), law="USL"))[-1] == (
        "The universal scalability law fits from 1 to 32 clients: contention 10 % (8 % … 12 %), "
        "crosstalk 0.002 (0.001 … 0.003), peak at 21.2"
    )
    assert said(scaling_of(laws=(amdahl, usl)))[-1] == "No scaling law fits (Amdahl and USL tested)"
    assert said(scaling_of())[-1] == "Too few levels to test a scaling law"


def test_a_curve_with_two_peaks_gets_no_law() -> None:
    assert said(scaling_of(dips=(Dip(2, 4, 8),)))[-1] == (
        "More than one peak: lower at 4 than at 2 and at 8, so no scaling law fits"
    )


def test_the_page_answers_with_the_knee_and_has_every_level() -> None:
    outline = Outline(render_page(by_clients()))
    text = outline.text.replace(NBSP, " ")
    assert outline.errors == []
    assert "pgbench-select, 591 MB: the knee is 4 clients." in text
    assert "There is no verdict" not in text
    assert "How it scales, 591 MB of data" in text
    assert "The universal scalability law fits" in text
    assert "every number of clients" in text


def test_what_is_missing_or_not_finished_is_said() -> None:
    assert answers(by_clients(rounds=3)) == ("pgbench-select, 591\xa0MB: too few rounds count.",)
    (answer,) = answers(replace(by_clients(), is_complete=False))
    assert answer == "pgbench-select, 591\xa0MB: the knee is 4 clients so far."


def test_a_terminal_shows_the_same_in_80_columns() -> None:
    lines = printed(by_clients(), 80)
    assert "pgbench-select, 591 MB: the knee is 4 clients." in lines
    assert "pgbench-select, 591 MB of data" in lines
    assert any(line.split()[:1] == ["6"] and "the highest" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_the_terminal_has_the_share_by_the_number_of_clients() -> None:
    lines = printed(on_both(), 260)
    first = lines.index(CAPTION) + 2
    assert lines[first - 1].startswith("Scaling is the rate as a multiple of one client's rate; kept is the")
    assert lines[first] == COSTS.replace(NBSP, " ")
    assert lines[first + 1].split() == ["Clients", "Scaling", "kept", "95", "%", "interval", "Rounds"]
    rows = [line.split() for line in lines[first + 2 : first + 2 + len(KEPT)]]
    assert [(int(row[0]), int(row[1]) / 100, int(row[-1])) for row in rows] == [
        (clients, share, 8) for clients, share in KEPT.items()
    ]


def test_the_page_and_the_document_have_it_too() -> None:
    of = on_both()
    outline = Outline(render_page(of))
    assert outline.errors == []
    assert CAPTION in outline.text
    assert COSTS.replace(ALL, "100 %.") in outline.text
    costs = comparison_document(of)["sharing_costs"]
    assert isinstance(costs, list)
    assert [one["level"] for one in costs[0]["levels"]] == [*KEPT]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            ((0.8, 1.1), (0.7, 0.9)),
            [AT_FOUR],
        ),
        (
            ((1.1, 1.3), (0.7, 0.9)),
            [
                AT_FOUR,
                f"At 2 clients {BETTER}: the interval is above {ALL}",
            ],
        ),
        (
            ((0.8, 1.1), (0.5, 1.2)),
            [f"No cost of sharing was shown or excluded: every interval includes {ALL}"],
        ),
    ],
)
def test_what_the_intervals_show_is_said(ends: tuple[tuple[float, float], ...], said: list[str]) -> None:
    levels = (
        SharedLevel(clients, Interval(low, (low + high) / 2, high, 0.95), 5)
        for clients, (low, high) in zip((2, 4), ends, strict=True)
    )
    assert sharing(SharingCost("pgbench-select", tuple(levels))).sentences == tuple(said)


@pytest.fixture(scope="module")
def terminal() -> list[str]:
    return printed(in_loops(), 110)


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(in_loops())


def test_the_terminal_has_a_row_per_part_their_sum_and_plpgsqls_own(terminal: list[str]) -> None:
    first = terminal.index("Parts of a transaction's time, default at one client: 8 rounds")
    names = [line.split("  ")[0].strip() for line in terminal[first + 1 : first + 8]]
    assert names == [
        "Part",
        "network + client",
        "protocol + transaction",
        "executor start and end",
        "the query itself",
        "a client-driven transaction",
        "PL/pgSQL, beside that",
    ]
    whole, plpgsql = terminal[first + 6 : first + 8]
    assert whole.rstrip().endswith("100 %")
    assert plpgsql.rstrip().endswith("–")


def test_what_one_cpu_is_enough_for_and_what_a_loop_takes_is_printed(terminal: list[str]) -> None:
    said = " ".join(" ".join(terminal).split())
    assert "In the server, per second of CPU time: 1" in said  # 166,113, in slowed rounds less
    assert "executions in a loop in C" in said
    assert "ns per iteration" in said
    assert "not distinguishable" not in said


def test_a_part_that_the_noise_hides_is_said_to_be_so() -> None:
    said = printed(in_loops(noise=0.6), 110)
    assert "Executor start and end: not distinguishable from zero" in said


def test_the_three_curves_are_told_each_with_its_knee_and_its_unit(terminal: list[str]) -> None:
    for load in ("client", "C loop", "PL/pgSQL loop"):
        assert f"{load}, 591 MB: the knee is 2 clients." in terminal
    heads = [line for line in terminal if line.lstrip().startswith("Clients  ")]
    assert [line.split()[1] for line in heads] == ["Transactions/s", "Executions/s", "Executions/s"]
    assert not [line for line in terminal if line.startswith(("empty loop", "one query"))]


def test_the_page_has_the_curves_side_by_side_on_one_scale_and_the_split(page: str) -> None:
    outline = Outline(page)
    assert outline.errors == []
    assert "Executions per second, by clients" in outline.text
    assert "Parts of a transaction's time" in outline.text
    assert outline.text.index("Side by side") < outline.text.index("How it scales")
    together = page[page.index("grid-together") :]
    panels = [name for name in ("client", "C loop", "PL/pgSQL loop") if f">{name}</text>" in together]
    assert panels == ["client", "C loop", "PL/pgSQL loop"]
    assert "Throughput in executions/s, by clients" in outline.text


def test_json_has_every_part_with_its_interval() -> None:
    document: dict[str, Any] = json.loads(json.dumps(comparison_document(in_loops()), allow_nan=False))
    (split,) = document["transaction_splits"]
    assert split["rounds"] == 8
    network = split["parts"][0]
    assert network["name"] == "network + client"
    assert network["time_us"]["low"] < network["time_us"]["mean"] < network["time_us"]["high"]
    assert network["is_distinguishable"]
    assert set(split["per_cpu_s"]) == {"client", "C loop", "PL/pgSQL loop"}
    assert {curve["load"]: curve["operation"] for curve in document["scaling"]} == {
        "client": None,
        "C loop": "executions",
        "PL/pgSQL loop": "executions",
    }
