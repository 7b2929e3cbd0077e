"""Verdicts in words: sentences written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment
from tests.golden.synthetic_steps import experiment as of_ten_steps

from pgdyno.measure.view import wording
from pgdyno.model.experiments.likeness import Likeness
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict

NBSP = "\N{NO-BREAK SPACE}"


def verdict(
    decision: Decision, bounds: tuple[float, float, float], metric: str = "throughput_tps"
) -> Verdict:
    low, point, high = bounds
    return Verdict(
        workload="pgbench-select",
        metric=metric,
        variant="plan",
        baseline="default",
        decision=decision,
        reason="cannot tell: the interval allows both",
        effect=point,
        interval=Interval(low, point, high, 0.95),
        mde=0.051,
        p_value=0.01,
        p_adjusted=0.02,
        rounds=6,
        blocks=12,
        void_blocks=0,
    )


def spoken(one: Verdict) -> tuple[str, str]:
    statement = wording.state(one, margin=0.02)
    return statement.headline.replace(NBSP, " "), statement.support.replace(NBSP, " ")


def test_more_throughput_is_said_with_its_interval() -> None:
    assert spoken(verdict(Decision.BETTER, (1.171, 1.192, 1.214))) == (
        "19.2 % more transactions per second",
        "95 % interval +17.1 % … +21.4 %",
    )


def test_less_throughput_is_said_without_a_minus_sign() -> None:
    headline, support = spoken(verdict(Decision.WORSE, (0.52, 0.55, 0.58)))
    assert headline == "45.0 % fewer transactions per second"
    assert support == "95 % interval −48.0 % … −42.0 %"


@pytest.mark.parametrize(
    ("metric", "bounds", "expected"),
    [
        ("server_cpu_us_per_transaction", (0.8, 0.85, 0.9), "15.0 % less server CPU per transaction"),
        ("server_cpu_us_per_transaction", (1.1, 1.15, 1.2), "15.0 % more server CPU per transaction"),
        ("latency_ms_p99", (0.8, 0.85, 0.9), "15.0 % lower 99th percentile latency"),
        ("latency_ms_p99", (1.1, 1.15, 1.2), "15.0 % higher 99th percentile latency"),
        ("metric_of_tomorrow", (1.1, 1.15, 1.2), "15.0 % higher metric_of_tomorrow"),
    ],
)
def test_direction_is_said_in_the_words_of_the_metric(
    metric: str, bounds: tuple[float, float, float], expected: str
) -> None:
    assert spoken(verdict(Decision.BETTER, bounds, metric))[0] == expected


@pytest.mark.parametrize(
    ("metric", "operation", "expected"),
    [
        ("throughput_tps", "rows", ("throughput", "rows/s")),
        ("throughput_tps", "queries", ("throughput", "queries/s")),
        ("throughput_tps", None, ("throughput", "transactions/s")),
        ("server_cpu_us_per_transaction", "rows", ("server CPU per row", "µs")),
        ("wal_bytes_per_transaction", "queries", ("WAL per query", "B")),
        ("read_bytes_per_transaction", "operations", ("bytes read from storage per operation", "B")),
        ("transactions_of_tomorrow", "rows", ("transactions_of_tomorrow", "")),
    ],
)
def test_metrics_speak_of_what_was_counted(
    metric: str, operation: str | None, expected: tuple[str, str]
) -> None:
    found = wording.metric_of(metric, operation)
    assert (found.title, found.unit) == expected
    assert found.name == metric


def test_verdicts_on_steps_speak_of_rows_and_queries() -> None:
    faster, dearer = (1.171, 1.192, 1.214), (1.1, 1.15, 1.2)
    cpu = verdict(Decision.WORSE, dearer, "server_cpu_us_per_transaction")
    assert wording.state(verdict(Decision.BETTER, faster), 0.02, "rows").claim == "more rows per second"
    assert wording.state(cpu, 0.02, "queries").claim == "more server CPU per query"


def test_equivalence_names_its_margin_and_what_was_measured() -> None:
    assert spoken(verdict(Decision.EQUIVALENT, (0.996, 1.003, 1.010))) == (
        "No difference in throughput beyond ±2 %",
        "measured +0.3 %, 95 % interval −0.4 % … +1.0 %",
    )


def test_inconclusive_says_what_was_measured_and_why_it_is_not_enough() -> None:
    one = verdict(Decision.INCONCLUSIVE, (0.98, 1.013, 1.048))
    statement = wording.state(one, margin=0.02)
    assert spoken(one) == ("Not decided for throughput", "measured +1.3 %, 95 % interval −2.0 % … +4.8 %")
    assert statement.reason == "cannot tell: the interval allows both"


def test_verdict_without_an_estimate_says_only_why() -> None:
    one = replace(
        verdict(Decision.INCONCLUSIVE, (1, 1, 1)), effect=None, interval=None, reason="no block counts"
    )
    statement = wording.state(one, margin=0.02)
    assert (statement.headline, statement.support, statement.reason) == (
        "Not decided for throughput",
        "",
        "no block counts",
    )


def test_verdict_without_an_interval_still_says_the_effect() -> None:
    one = replace(verdict(Decision.INCONCLUSIVE, (1.1, 1.1, 1.1)), interval=None)
    assert spoken(one)[1] == "measured +10.0 %"


def test_answer_leads_with_throughput_and_never_hides_what_got_worse() -> None:
    (answer,) = wording.answers(experiment())
    assert answer == (
        "Better on sysbench-read-only; no difference that matters on sysbench-read-write. "
        "Worse: 99th percentile latency on sysbench-read-write."
    )


def test_answer_does_not_name_a_replay_as_the_workload_that_it_is_unlike() -> None:
    # 0.7 is the least likeness that is measured without --unlike.
    found = {READ_ONLY: Likeness({"calls": 0.69}, ()), READ_WRITE: Likeness({"calls": 0.7}, ())}
    (answer,) = wording.answers(replace(experiment(), likenesses=found))
    assert answer == (
        "Better on a replay unlike sysbench-read-only; no difference that matters on "
        "sysbench-read-write. Worse: 99th percentile latency on sysbench-read-write."
    )


def test_answer_names_the_variants_when_there_are_several() -> None:
    base = experiment()
    more = tuple(replace(v, variant="other", decision=Decision.INCONCLUSIVE) for v in base.verdicts)
    assert wording.answers(replace(base, verdicts=(*base.verdicts, *more)))[1] == (
        "other: not decided on sysbench-read-only and sysbench-read-write."
    )


def test_answer_of_an_interrupted_experiment_without_verdicts() -> None:
    assert wording.answers(replace(experiment(), verdicts=(), is_complete=False)) == (
        "There is no verdict yet: the experiment was interrupted too early.",
    )


def test_answer_of_an_experiment_that_compared_nothing() -> None:
    assert wording.answers(replace(experiment(), verdicts=())) == (
        "There is no verdict: nothing was compared.",
    )


def test_answer_leads_with_another_metric_where_throughput_was_not_judged() -> None:
    base = experiment()
    latency = tuple(v for v in base.verdicts if v.metric == "latency_ms_p99")
    assert wording.answers(replace(base, verdicts=latency)) == (
        f"Worse on {READ_WRITE}; not decided on {READ_ONLY}.",
    )


def test_answer_names_steps_shortly_and_each_cost_once() -> None:
    worker = wording.answers(of_ten_steps())[1]
    assert worker == (
        "18-worker: worse on l.i1 and qp100; no difference that matters on l.i0, l.x, qr100, qr500 and qp500"
        "; not decided on l.i2; background rate missed, so not compared, on qr1000 and qp1000. "
        "Worse: server CPU per row on l.i1; server CPU per query on qp100."
    )


def test_decisions_have_signs_of_their_own() -> None:
    assert len({wording.symbol(decision) for decision in Decision}) == 4
