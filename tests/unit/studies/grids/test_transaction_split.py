"""Parts of a transaction's time: on a terminal, on the page, as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console
from tests.golden.synthetic_loop import experiment
from tests.unit.results.test_page import Outline

from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table

NBSP = "\N{NO-BREAK SPACE}"


def printed(noise: float = 0.01) -> list[str]:
    console = Console(file=io.StringIO(), width=110)
    console.print(verdict_table(experiment(noise=noise)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace(NBSP, " ").splitlines()


@pytest.fixture(scope="module")
def terminal() -> list[str]:
    return printed()


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(experiment())


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
    said = printed(noise=0.6)
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
    document: dict[str, Any] = json.loads(json.dumps(comparison_document(experiment()), allow_nan=False))
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
