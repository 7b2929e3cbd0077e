"""Whether a plan pays: the rule by which ``accelerate`` keeps or reverts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.verdict import Decision, Verdict

THROUGHPUT, TAIL = "throughput_tps", "latency_ms_p99"


@dataclass(frozen=True)
class Acceptance:
    """The decision on a variant and, sentence by sentence, why."""

    is_accepted: bool
    reasons: tuple[str, ...]


def accept(verdicts: Sequence[Verdict], variant: str, *, max_loss: float) -> Acceptance:
    """Judge ``variant`` by the verdicts of one experiment.

    It is accepted if throughput is better on at least one workload and, on every workload, the intervals
    for throughput and for the 99th percentile of latency exclude a loss beyond ``max_loss`` (0.05 = 5 %).
    An interval that could not be computed excludes nothing.
    """
    own = [verdict for verdict in verdicts if verdict.variant == variant]
    better = [v for v in own if v.metric == THROUGHPUT and v.decision is Decision.BETTER]
    risks = [sentence for v in own if (sentence := _possible_loss(v, max_loss))]
    if not better:
        return Acceptance(is_accepted=False, reasons=("throughput is not better on any workload", *risks))
    if risks:
        return Acceptance(is_accepted=False, reasons=tuple(risks))
    names = ", ".join(sorted(v.workload for v in better))
    return Acceptance(
        is_accepted=True,
        reasons=(
            f"throughput is better on {names}",
            f"no workload can have lost more than {max_loss:.0%} of throughput or of p99 latency",
        ),
    )


def _possible_loss(verdict: Verdict, max_loss: float) -> str | None:
    """Return which loss beyond the limit the interval leaves possible, or None."""
    if verdict.metric not in (THROUGHPUT, TAIL):
        return None
    if verdict.interval is None:
        return f"{verdict.workload}: no interval for {verdict.metric} ({verdict.reason})"
    if verdict.metric == THROUGHPUT:
        loss = 1 - verdict.interval.low
        what = "throughput may have fallen"
    else:
        loss = verdict.interval.high - 1
        what = "p99 latency may have risen"
    return f"{verdict.workload}: {what} by {loss:.1%} (limit {max_loss:.0%})" if loss > max_loss else None
