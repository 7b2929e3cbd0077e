"""An experiment that was put together from parts; its figures are made up."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment

from pgdyno.model.experiments.experiment import DesignKind, Experiment, Part
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict


def verdict(variant: str, baseline: str, workload: str, low: float, point: float, high: float) -> Verdict:
    decision = Decision.BETTER if low > 1 else Decision.INCONCLUSIVE
    return Verdict(
        workload=workload, metric="throughput_tps", variant=variant, baseline=baseline, decision=decision,
        reason="why", effect=point, interval=Interval(low, point, high, 0.95), mde=None, p_value=None,
        p_adjusted=None, rounds=5, blocks=5, void_blocks=0,
    )  # fmt: skip


def composed() -> Experiment:
    parts = (
        Part("20261122-1", DesignKind.DUET, 9, ("default", "application"),
             (verdict("application", "default", READ_ONLY, 1.08, 1.10, 1.12),
              verdict("application", "default", READ_WRITE, 1.01, 1.03, 1.05))),
        Part("20261122-2", DesignKind.ALTERNATING, 5, ("application", "plan"),
             (verdict("plan", "application", READ_ONLY, 0.70, 0.98, 1.37),
              replace(verdict("plan", "application", READ_WRITE, 1, 1, 1), effect=None, interval=None))),
    )  # fmt: skip
    whole = (
        verdict("plan", "default", READ_ONLY, 0.77, 1.08, 1.51),
        verdict("plan", "default", READ_WRITE, 0.8, 1.0, 1.3),
    )
    return replace(experiment(), blocks=(), verdicts=whole, parts=parts, noise_floor=())
