"""The page of a grid: gains and charts load by load, single trials folded away, no hundreds of charts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.golden.synthetic_grid import CELLS, NOT_TO_BE_HAD, experiment
from tests.unit.results.test_page import Outline

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.page import render_page

HOSTILE = '<script>alert("x")</script>&"\'><img src=//evil.example onerror=y>{{7*7}}'
MOST_BYTES = 1_500_000


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(experiment())


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    return Outline(page)


def test_page_is_well_formed_and_its_ids_are_unique(outline: Outline) -> None:
    assert outline.errors == []
    ids = [attributes["id"] for _, attributes in outline.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert all((link["href"] or "").lstrip("#") in ids for link in outline.of("a"))


def test_page_loads_nothing_and_runs_nothing(outline: Outline) -> None:
    assert not outline.tags() & {"script", "img", "link", "iframe", "object"}
    assert not [tag for tag, attributes in outline.elements if "style" in attributes]


def test_grid_comes_after_the_answers_and_before_the_trials(outline: Outline) -> None:
    text = outline.text
    places = [
        text.index(part)
        for part in (
            "2MB: better on pgbench-select",
            "Left out to keep the budget of 45 min",
            "A bar is the 95 % interval",
            "Throughput against 4kB, by clients",
            "Throughput in transactions/s, by clients",
            "Throughput in transactions/s, by database size",
            "Page tables of the server's processes in MB, by clients",
            "Every trial Each point is one block",
        )
    ]
    assert places == sorted(places)


def test_gaps_and_void_trials_are_said(outline: Outline) -> None:
    assert f"1GB at 2 GB, 16 clients: {NOT_TO_BE_HAD}" in outline.text
    assert "round 3, block 1: 13.1% of the CPU time was stolen by the hypervisor (limit 10%)" in outline.text


def test_few_charts_are_in_view_and_there_are_no_cards(page: str, outline: Outline) -> None:
    folded = re.compile(r"<details(?:(?!<details).)*?</details>", re.DOTALL)
    unfolded = page
    while folded.search(unfolded):
        unfolded = folded.sub("", unfolded)
    assert unfolded.count('class="chart wide"') == 8  # four of each load
    assert outline.of("article") == []


def test_a_chart_of_trials_per_cell_is_folded_away(outline: Outline) -> None:
    folds = [one for one in outline.of("details") if one.get("class") == "step"]
    assert len(folds) == len(CELLS) == 18
    assert not [one for one in folds if "open" in one]


def test_page_stays_small(page: str) -> None:
    assert len(page.encode()) < MOST_BYTES


def test_of_very_many_trials_there_are_no_charts() -> None:
    base = experiment()
    twice = (*base.blocks, *(replace(block, index=1) for block in base.blocks))
    page = render_page(replace(base, blocks=twice))
    assert page.count("This experiment has too many trials for one page") == 18
    assert len(page.encode()) < MOST_BYTES


def test_method_names_the_clients_and_no_command_that_does_not_know_the_cells(outline: Outline) -> None:
    assert "1, 4 and 16, by cell" in outline.text
    assert "pgdyno run huge-pages" in outline.text
    assert "pgdyno compare" not in outline.text


def test_texts_are_escaped() -> None:
    base = experiment()
    hostile = replace(
        base,
        cells={name: replace(cell, load=HOSTILE) for name, cell in base.cells.items()},
        notes=(HOSTILE,),
        blocks=tuple(replace(b, void=b.void and HOSTILE) for b in base.blocks),
    )
    found = Outline(render_page(hostile))
    assert found.errors == []
    assert not found.tags() & {"script", "img"}
    assert "49" not in "".join(text for text in found.texts if "evil" in text)


@pytest.mark.parametrize("what", ["blocks", "verdicts"])
def test_an_interrupted_grid_still_renders(what: str) -> None:
    nothing: dict[str, Experiment] = {
        "blocks": replace(experiment(), blocks=(), verdicts=(), is_complete=False),
        "verdicts": replace(experiment(), verdicts=(), is_complete=False),
    }
    found = Outline(render_page(nothing[what]))
    assert found.errors == []
    assert "There is no verdict yet" in found.text
