"""What ``--json`` prints of an experiment with steps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.golden.synthetic import experiment as without_steps
from tests.golden.synthetic_steps import experiment

from pgdyno.measure.decisions.plan_outcome import gate_code
from pgdyno.model.experiments.verdict import Decision
from pgdyno.results.documents import comparison_document


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(comparison_document(experiment()), allow_nan=False))
    return found


def result(document: dict[str, Any], step: str, variant: str) -> dict[str, Any]:
    (found,) = [one for one in document["steps"] if one["step"] == step]
    (own,) = [one for one in found["variants"] if one["variant"] == variant]
    assert isinstance(own, dict)
    return own


def test_all_ten_steps_are_named_in_their_order(document: dict[str, Any]) -> None:
    assert " ".join(step["step"] for step in document["steps"]) == (
        "l.i0 l.x l.i1 l.i2 qr100 qp100 qr500 qp500 qr1000 qp1000"
    )
    assert {step["workload"] for step in document["steps"]} == {
        f"insert-benchmark-{step['step']}" for step in document["steps"]
    }


def test_a_step_says_what_it_counts_and_its_background_target(document: dict[str, Any]) -> None:
    load, *_, query = document["steps"]
    assert (load["operation"], load["unit"], load["background_target_rows_per_s"]) == ("rows", "rows/s", None)
    assert (query["operation"], query["unit"]) == ("queries", "queries/s")
    assert query["background_target_rows_per_s"] == 2000.0


def test_a_variant_has_rate_ratio_interval_and_verdict(document: dict[str, Any]) -> None:
    found = result(document, "l.x", "18-io_uring")
    (comparison,) = [
        one
        for one in document["comparisons"]
        if (one["workload"], one["metric"], one["variant"])
        == ("insert-benchmark-l.x", "throughput_tps", "18-io_uring")
    ]
    assert found["rate"] > 280_000
    assert found["relative"] == comparison["effect"]
    assert found["interval"] == comparison["interval"]
    assert found["verdict"] == "better"
    assert (found["is_missed"], found["is_compared"], found["is_baseline"]) == (False, True, False)


def test_the_baseline_has_no_ratio_to_itself(document: dict[str, Any]) -> None:
    found = result(document, "qr100", "17")
    assert (found["is_baseline"], found["relative"], found["verdict"]) == (True, None, None)
    assert found["background_share"] == pytest.approx(0.999)


def test_missed_cells_have_no_ratio(document: dict[str, Any]) -> None:
    missed = result(document, "qr1000", "18-worker")
    assert (missed["is_missed"], missed["is_compared"], missed["relative"]) == (True, False, None)
    assert (missed["missed_passes"], missed["lowest_background_share"]) == (6, 0.91)
    without_base = result(document, "qp1000", "18-sync")
    assert (without_base["is_missed"], without_base["is_compared"]) == (False, False)
    assert without_base["relative"] is None


def test_experiments_without_steps_have_an_empty_list() -> None:
    assert comparison_document(without_steps())["steps"] == []


def gated(workload: str, *notes: str) -> int:
    """Return the exit code of one step in which throughput is nowhere worse."""
    whole = experiment()
    verdicts = [v for v in whole.verdicts if v.workload == f"insert-benchmark-{workload}"]
    kept = tuple(
        replace(v, decision=Decision.EQUIVALENT if v.effect is not None else v.decision) for v in verdicts
    )
    return gate_code(replace(whole, verdicts=kept, notes=notes))


def test_a_variant_that_misses_a_rate_which_the_baseline_keeps_is_a_regression() -> None:
    assert gated("qr1000") == 5


def test_where_the_baseline_misses_it_nothing_is_known() -> None:
    assert gated("qp1000") == 6
    assert gated("qr500") == 0


def test_a_variant_that_could_not_be_measured_is_inconclusive() -> None:
    assert gated("qr500", "idx is a failed trial: the SQL of idx failed at statement 1 of 1") == 6
    assert gated("qr1000", "idx is a failed trial: the SQL of idx failed at statement 1 of 1") == 5
