"""The page of an experiment with steps: tables first, everything else folded away."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from tests.golden.synthetic_steps import PREFIX, RATES, experiment
from tests.unit.results.test_page import Outline

from pgdyno.model.experiments.experiment import ArmBlock, Experiment
from pgdyno.results.page import render_page

HOSTILE = '<script>alert("x")</script>&"\'><img src=//evil.example onerror=y>{{7*7}}'


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(experiment())


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    return Outline(page)


def test_page_is_well_formed_and_its_ids_are_unique(outline: Outline) -> None:
    assert outline.errors == []
    ids = Counter(attributes["id"] for _, attributes in outline.elements if attributes.get("id"))
    assert [name for name, count in ids.items() if count > 1] == []


def test_page_loads_nothing_and_runs_nothing(outline: Outline) -> None:
    assert not outline.tags() & {"script", "img", "link", "iframe", "object"}
    assert not [tag for tag, attributes in outline.elements if "style" in attributes]


def test_mode_then_tables_come_before_every_step(outline: Outline) -> None:
    text = outline.text
    places = [
        text.index(part)
        for part in (
            "18-sync: better on l.i0",
            "Insert Benchmark: corrected mode",
            "Relative rate (rQPS)",
            "Rows or queries per second",
            "share of the target",
            "Every step and trial",
            "Settings before and after",
        )
    ]
    assert places == sorted(places)
    assert text.count("Insert Benchmark: corrected mode") == 1


def test_every_step_is_folded_and_its_line_says_what_was_found(outline: Outline) -> None:
    folds = [one for one in outline.of("details") if one.get("class") == "step"]
    assert [one["id"] for one in folds] == [f"step-{step}" for step in RATES]
    assert not [one for one in folds if "open" in one]
    assert "18-worker missed" in outline.text


def test_few_charts_are_in_view(page: str) -> None:
    unfolded = re.sub(r"<details.*</details>", "", page, flags=re.DOTALL)
    assert 'class="chart wide"' not in unfolded


def test_nothing_speaks_of_transactions_per_second_of_a_step(outline: Outline) -> None:
    text = outline.text
    assert "server CPU per transaction" not in text
    assert "Server CPU per query" in text
    assert "rows/s" in text


def test_evidence_of_a_step_is_there(outline: Outline) -> None:
    for part in (
        "insert, 18-worker",
        "12 × 40P01 repeated",
        "LWLock",
        "during checkpoint",
        "a checkpoint was under way from 10.6 s to 12.9 s",
        "pg_ stat_ io. client_ backend. relation. normal. reads",
        "CPU µs per operation, whole machine, including the client and all other processes",
        "CPU µs per row, server processes only",
        "round 3, block 1: 21.0% of the CPU time went to other processes",
    ):
        assert part in outline.text, part


def test_steps_alone_are_not_said_to_be_compared() -> None:
    base = experiment()
    alone = replace(base, variants=base.variants[:1], verdicts=())
    text = Outline(render_page(alone)).text
    assert "Relative rate" not in text
    assert "Rows or queries per second" in text


def test_steps_without_records_have_their_charts_still() -> None:
    base = experiment()
    blocks = tuple(replace(b, arms=tuple(replace(a, step=None) for a in b.arms)) for b in base.blocks)
    found = Outline(render_page(replace(base, blocks=blocks)))
    assert found.errors == []
    assert "Every round of l.i0" in found.text
    assert "published fields" not in found.text


def test_texts_of_records_are_escaped() -> None:
    found = Outline(render_page(_everywhere(HOSTILE)))
    assert found.errors == []
    assert not found.tags() & {"script", "img"}
    assert "49" not in "".join(text for text in found.texts if "evil" in text)


def _everywhere(value: str) -> Experiment:
    """Return the experiment with one text in every place of a record that is filled from outside."""
    base = experiment()

    def planted(arm: ArmBlock) -> ArmBlock:
        assert arm.step is not None
        return replace(
            arm,
            step=replace(
                arm.step,
                stalls=tuple(replace(stall, why=value) for stall in arm.step.stalls),
                roles=tuple(replace(role, name=value, errors={value: 1}) for role in arm.step.roles),
                waits={value: 1.0},
                counters={value: 1e6},
                published={value: 1.0},
            ),
        )

    blocks = tuple(replace(b, arms=tuple(map(planted, b.arms)), void=b.void and value) for b in base.blocks)
    return replace(base, blocks=blocks, workloads=(f"{PREFIX}l.i1", f"{PREFIX}qp100"), notes=(value,))
