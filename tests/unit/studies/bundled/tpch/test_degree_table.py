"""Best degrees on the terminal, the page and as JSON."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest
from rich.console import Console
from tests.golden.synthetic_degrees import TIMES_MS, simulated
from tests.golden.synthetic_tpch import experiment

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.studies.bundled.tpch.degree_table import best_degrees

NBSP = "\N{NO-BREAK SPACE}"
PLANNED: Mapping[str, Mapping[int, float]] = {
    "q1": {1: 1, 2: 2, 4: 4},
    "q3": {1: 1, 2: 2, 4: 2},
    "q4": {1: 1, 2: 1, 4: 1},
    "q6": {1: 1, 2: 2, 4: 2},
    "throughput": {1: 20, 2: 40, 4: 60},
}
STATEMENTS = [
    "SET LOCAL max_parallel_workers_per_gather = 0;  -- q4",
    "SET LOCAL max_parallel_workers_per_gather = 1;  -- q6",
    "SET LOCAL max_parallel_workers_per_gather = 2;  -- q3",
    "SET LOCAL max_parallel_workers_per_gather = 4;  -- q1",
]


def printed(of: Experiment, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(verdict_table(of))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace(NBSP, " ")


def degrees_in(shown: str) -> list[str]:
    """Return the lines on best degrees."""
    return shown.partition("Best degree of each query\n")[2].partition("\n\n")[0].splitlines()


def words_on(of: Experiment) -> str:
    """Return what is said of best degrees, however its lines are broken."""
    return " ".join(" ".join(degrees_in(printed(of))).split())


def test_the_terminal_has_a_row_per_query_and_what_to_set() -> None:
    lines = degrees_in(printed(simulated(TIMES_MS, planned=PLANNED)))
    table = lines[: next(place for place, line in enumerate(lines) if line.startswith("By itself"))]
    rows = {line.split()[0]: line.split() for line in table}
    assert rows["q1"] == ["q1", "4", "4", "0,", "1,", "2,", "4"]
    assert rows["q3"] == ["q3", "2", "2", "0,", "1,", "2,", "2"]
    assert rows["q2"] == ["q2", *(2 * ["no", "workers", "planned"]), "0,", "0,", "0,", "0"]
    assert rows["throughput"] == ["throughput", "run", "0", "0", "–"]
    assert [line.strip() for line in lines if "SET LOCAL" in line] == STATEMENTS
    assert "To set in a query's own transaction; certain all together:" in lines
    assert all(len(line) <= 80 for line in lines)


def test_it_says_how_sure_it_is_and_for_how_many() -> None:
    words = words_on(simulated(TIMES_MS, planned=PLANNED))
    assert "By itself: each bound holds with 95 % confidence, regardless of other queries;" in words
    assert "All together: with 95 % confidence, none of all 5 is wrong (Bonferroni)" in words
    assert "Queries ran alone on the machine; with other load, fewer may be best" in words


def test_it_says_which_queries_got_fewer_workers_than_planned() -> None:
    words = words_on(simulated(TIMES_MS, planned={"q1": {2: 2, 4: 4}}))
    assert (
        "Fewer workers were launched than planned: q1 at 2 (50 %) and q1 at 4 (50 %). These degrees "
        "were not reached; max_parallel_workers and max_worker_processes limit them"
    ) in words


def test_what_the_rounds_do_not_tell_is_said_to_be_so() -> None:
    times = {"q1": {0: 100.0, 2: 100.0}, "q3": {0: 100.0, 2: 95.5}}
    usual = {0: 20.0, 2: 20.0}
    loud = simulated(times, noise=0.3, usual=usual)
    (q1,) = (line for line in degrees_in(printed(loud)) if line.startswith("q1 "))
    assert q1.count("not distinguishable") == 2
    assert "No query's degree is certain jointly with all others; measure more passes" in words_on(loud)
    quiet = degrees_in(printed(simulated(times, noise=0.008, usual=usual)))
    (q3,) = (line for line in quiet if line.startswith("q3 "))
    assert "between 0 and 2" in q3


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (simulated(TIMES_MS, rounds=4), "Too few valid rounds: at least 5 are needed"),
        (
            simulated(TIMES_MS, planned={}),
            "No plan had workers, so the degree has no effect; pgdyno explain-degree shows the reasons",
        ),
    ],
)
def test_where_there_is_no_answer_there_is_no_table(of: Experiment, said: str) -> None:
    (found,) = best_degrees(of)
    assert (found.table, found.narrow_table, found.sentences, found.statements) == (None, None, (said,), ())
    assert said in words_on(of)
    assert said in render_page(of)


def test_other_factors_have_nothing_of_it() -> None:
    assert best_degrees(experiment()) == ()
    assert "Best degree" not in render_page(experiment())


def test_the_page_has_the_share_of_the_highest_rate_at_every_degree() -> None:
    page = render_page(simulated(TIMES_MS, planned=PLANNED)).replace(NBSP, " ")
    assert "Best degree of each query" in page
    assert "the highest" in page
    assert "2 planned" in page
    for statement in STATEMENTS:
        assert statement in page
    (found,) = best_degrees(simulated(TIMES_MS, planned=PLANNED))
    assert found.table is not None
    q1 = dict(found.table.rows)["q1"]
    assert [cell.text.replace(NBSP, " ") for cell in q1[:2]] == ["4", "4"]
    assert q1[-1].text == "the highest"
    share = float(q1[2].text.replace(NBSP, " ").removesuffix(" %"))
    assert 22 < share < 23  # 90 ms of 400: 22.5 %


def test_the_document_has_every_query_with_both_knees() -> None:
    document = comparison_document(simulated(TIMES_MS, planned=PLANNED))["tpch"]
    assert isinstance(document, dict)
    (found,) = document["best_degrees"]
    assert (found["degrees"], found["compared"]) == ([0, 1, 2, 4], 5)
    q6 = next(one for one in found["queries"] if one["name"] == "q6")
    assert q6["together"] == {"low": 1, "high": 1, "tolerance": 0.05}
    assert q6["set_to"] == 1
    assert [level["level"] for level in q6["levels"]] == [0, 1, 2, 4]
