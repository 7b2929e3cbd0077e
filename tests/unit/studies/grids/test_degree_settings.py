"""What to set for a query, as the terminal and the page say it."""

from __future__ import annotations

import io
import json

from rich.console import Console
from tests.golden.synthetic_clients import experiment as by_clients
from tests.golden.synthetic_workers import experiment
from tests.unit.results.test_page import Outline

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.studies.grids.degree_settings import what_to_set

NBSP = "\N{NO-BREAK SPACE}"


def said(of: Experiment) -> tuple[str, ...]:
    found = what_to_set(of)
    assert found is not None
    return tuple(one.replace(NBSP, " ") for one in found.sentences)


def test_a_number_is_said_with_its_certainty_and_its_cost() -> None:
    first, *besides = said(experiment())
    alone, others = first.split("; ")
    assert alone == (
        "count by itself: 1 worker, at least 95 % of any other number's rate (confirmed by fresh rounds)"
    )
    assert others.startswith("2 clients at once: 73")
    assert others.endswith(" of their highest, with 0 workers")
    assert len(besides) == 2
    found = what_to_set(experiment())
    assert found is not None
    assert found.statements == ("SET max_parallel_workers_per_gather = 1;  -- count",)


def test_others_may_do_best_with_the_same_number() -> None:
    (first, *_) = said(experiment(at_once={0: 8.0, 1: 11.0, 2: 9.0}))
    assert first.endswith("; 2 clients at once: the best for them too")


def test_settings_that_were_on_for_it_are_part_of_the_statement() -> None:
    found = what_to_set(experiment("partition-wise"))
    assert found is not None
    assert found.statements == (
        (
            "SET max_parallel_workers_per_gather = 1; SET enable_partitionwise_join = on; "
            "SET enable_partitionwise_aggregate = on;  -- partition-wise"
        ),
    )


def test_what_else_limits_a_number_is_said_of_queries_or_of_builds() -> None:
    assert said(experiment())[-1].startswith("max_parallel_workers_per_gather is an upper limit: ")
    assert said(experiment("create-index"))[-1].startswith("max_parallel_maintenance_workers is an upper ")


def test_what_is_not_certain_is_no_statement() -> None:
    unsure = experiment(alone={0: 10.0, 1: 10.2, 2: 10.4}, noise=0.2)
    assert said(unsure) == (
        "count: the best number is not certain yet (0 or more); --budget for more rounds",
    )
    found = what_to_set(unsure)
    assert found is not None
    assert found.statements == ()


def test_the_terminal_the_page_and_the_json_have_it_and_not_for_clients() -> None:
    outline = Outline(render_page(experiment()))
    assert outline.errors == []
    console = Console(file=io.StringIO(), width=200)
    console.print(verdict_table(experiment()))
    assert isinstance(console.file, io.StringIO)
    for text in (outline.text, console.file.getvalue()):
        assert "What to set" in text
        assert "SET max_parallel_workers_per_gather = 1; -- count" in " ".join(text.split())
    document = json.loads(json.dumps(comparison_document(experiment())))
    assert [(one["load"], one["workers"]) for one in document["degree_settings"]] == [("count", 1)]
    assert what_to_set(by_clients()) is None
    assert "What to set" not in render_page(by_clients())
