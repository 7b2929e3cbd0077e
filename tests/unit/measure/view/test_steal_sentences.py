"""Adjusted effects in words and figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.measure.view.steal_sentences import adjustment_tables, refusals
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.store.bundle import check_bundle

RECORDED = Path(__file__).parents[3] / "fixtures/bundles/earlier/tuned-vs-default.zip"


@pytest.fixture(scope="module")
def recorded() -> Experiment:
    found = check_bundle(RECORDED).experiment
    assert found is not None
    return found


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_adjusted_effects_stand_beside_the_unadjusted_ones(recorded: Experiment) -> None:
    _, writing = adjustment_tables(recorded)
    assert plain(writing.caption) == (
        "sysbench-read-write: the hypervisor took between 0.9 % and 57.8 % of the CPU time of 25 trials. "
        "Adjusted for stolen time: effects at equal stolen time; the verdicts use the unadjusted effects"
    )
    assert [plain(column.title) for column in writing.columns] == [
        "Variant", "Metric", "Unadjusted", "Adjusted", "95 % interval",
    ]  # fmt: skip
    (plan,) = (row for row in writing.rows if row[:2] == ("plan", "throughput"))
    assert (plain(plan[2]), plain(plan[3])) == (
        "−57 %",
        "+35.4 %",
    )  # of the recorded report; of the review: +35 % (+24 … +48)
    assert refusals(recorded) == ()


def test_why_nothing_is_adjusted_is_said(recorded: Experiment) -> None:
    credited = replace(recorded, burstable_type="t3.micro")
    assert adjustment_tables(credited) == ()
    assert plain(refusals(credited)[1]) == (
        "sysbench-read-write: the hypervisor took between 0.9 % and 57.8 % of the CPU time of 25 trials. No "
        "effect is adjusted for it: t3.micro has CPU credits: steal time depends on earlier use"
    )
    page = render_page(credited)
    assert page.count("No effect is adjusted for it") == 2


def test_page_and_document_have_them(recorded: Experiment) -> None:
    assert "Adjusted for stolen time: effects at equal stolen time" in render_page(recorded)
    found = comparison_document(recorded)["adjusted_for_stolen_time"]
    assert isinstance(found, list)
    assert [one["workload"] for one in found] == list(recorded.workloads)
    assert {"metric", "variant", "interval"} <= set(found[1]["effects"][0])
