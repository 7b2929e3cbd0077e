"""``--gate``: whether a comparison lets a change through, as an exit code. Pure."""

from __future__ import annotations

from pgdyno.measure.verdicts.analysis import missed_rate
from pgdyno.measure.verdicts.failures import is_shown
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision, Verdict

_REGRESSION, _INCONCLUSIVE = 5, 6


def gate_code(experiment: Experiment) -> int:
    """Return 5 if throughput regressed anywhere, else 6 if anything is inconclusive, else 0.

    A variant that misses a background rate which the baseline keeps has regressed, and so has one of whose
    transactions more fail.
    """
    throughput = [v for v in experiment.verdicts if v.metric == THROUGHPUT]
    decisions = [verdict.decision for verdict in throughput]
    if Decision.WORSE in decisions or any(_has_fallen_behind(experiment, v) for v in throughput):
        return _REGRESSION
    return _INCONCLUSIVE if Decision.INCONCLUSIVE in decisions or not decisions else 0


def _has_fallen_behind(experiment: Experiment, verdict: Verdict) -> bool:
    blocks, workload = experiment.blocks, verdict.workload
    missed, baseline_missed = (
        missed_rate(blocks, workload, name) for name in (verdict.variant, verdict.baseline)
    )
    return (missed is not None and baseline_missed is None) or is_shown(
        blocks, workload, verdict.variant, verdict.baseline
    )
