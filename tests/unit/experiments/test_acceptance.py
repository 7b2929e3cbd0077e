"""When ``accelerate`` keeps a plan."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.experiments.acceptance import accept, promises
from pgdyno.model.experiment import DesignKind, Part
from pgdyno.model.verdict import Decision, Equivalence, Interval, Verdict


def verdict(workload: str, metric: str, decision: Decision, low: float, high: float) -> Verdict:
    """A verdict whose one-sided bounds are ``low`` and ``high``."""
    interval = Interval(low, (low * high) ** 0.5, high, 0.90)
    return Verdict(
        workload=workload,
        metric=metric,
        variant="plan",
        baseline="default",
        decision=decision,
        reason="why",
        effect=interval.point,
        interval=interval,
        mde=None,
        p_value=None,
        p_adjusted=None,
        rounds=6,
        blocks=6,
        void_blocks=0,
        equivalence=Equivalence(0.02, 0.5, interval),
    )


FASTER = verdict("read", "throughput_tps", Decision.BETTER, 1.10, 1.15)
SAFE_TAIL = verdict("read", "latency_ms_p99", Decision.INCONCLUSIVE, 0.90, 1.04)


def test_a_plan_that_is_better_somewhere_and_loses_nowhere_is_accepted() -> None:
    found = accept([FASTER, SAFE_TAIL], "plan", max_loss=0.05)
    assert found.is_accepted
    assert found.reasons[0] == "throughput is better on read"


def test_a_plan_that_is_better_nowhere_is_not() -> None:
    same = verdict("read", "throughput_tps", Decision.EQUIVALENT, 0.99, 1.01)
    found = accept([same, SAFE_TAIL], "plan", max_loss=0.05)
    assert (found.is_accepted, found.reasons) == (False, ("throughput is not better on any workload",))


def test_a_possible_loss_of_throughput_on_another_workload_outweighs_a_gain() -> None:
    risky = verdict("write", "throughput_tps", Decision.INCONCLUSIVE, 0.93, 1.10)
    found = accept([FASTER, SAFE_TAIL, risky], "plan", max_loss=0.05)
    assert not found.is_accepted
    assert found.reasons == ("write: throughput may have fallen by 7.0% (limit 5%)",)


def test_a_possible_rise_of_tail_latency_does_too() -> None:
    risky = verdict("read", "latency_ms_p99", Decision.INCONCLUSIVE, 0.90, 1.08)
    found = accept([FASTER, risky], "plan", max_loss=0.05)
    assert found.reasons == ("read: p99 latency may have risen by 8.0% (limit 5%)",)


def step(variant: str, baseline: str, found: Verdict) -> Part:
    names = (baseline, variant)
    return Part("1", DesignKind.DUET, 6, names, (replace(found, variant=variant, baseline=baseline),))


def test_a_step_that_is_shown_to_be_slower_is_not_kept_for_the_others() -> None:
    slower = verdict("read", "throughput_tps", Decision.WORSE, 0.90, 0.94)
    parts = (step("application", "default", FASTER), step("plan", "application", slower))
    found = accept([FASTER, SAFE_TAIL], "plan", max_loss=0.05, parts=parts)
    assert (found.is_accepted, found.reasons) == (
        False,
        ("plan is slower than application on read (why): leave that layer out",),
    )
    assert not promises([FASTER], "plan", max_loss=0.05, parts=parts)


def test_a_step_that_is_not_decided_does_not_stand_in_the_way_of_the_whole() -> None:
    unclear = verdict("read", "throughput_tps", Decision.INCONCLUSIVE, 0.70, 1.40)
    parts = (step("application", "default", FASTER), step("plan", "application", unclear))
    assert accept([FASTER, SAFE_TAIL], "plan", max_loss=0.05, parts=parts).is_accepted


def test_verdicts_on_other_variants_do_not_count() -> None:
    assert not accept([FASTER], "pgtune", max_loss=0.05).is_accepted


def test_a_trial_promises_something_whatever_its_tail_says() -> None:
    risky = verdict("read", "latency_ms_p99", Decision.INCONCLUSIVE, 0.50, 1.90)
    assert promises([FASTER, risky], "plan", max_loss=0.05)
    slower = verdict("write", "throughput_tps", Decision.WORSE, 0.80, 0.90)
    assert not promises([FASTER, slower], "plan", max_loss=0.05)


def test_a_withheld_verdict_excludes_no_loss_however_narrow_its_interval() -> None:
    drifted = replace(verdict("write", "throughput_tps", Decision.INCONCLUSIVE, 0.99, 1.01), is_withheld=True)
    found = accept([FASTER, SAFE_TAIL, drifted], "plan", max_loss=0.05)
    assert found.reasons == ("write: nothing is known about throughput_tps (why)",)
