"""Whether a plan pays: the rule by which ``accelerate`` keeps or reverts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.experiment import Part
from pgdyno.model.verdict import Decision, Verdict

THROUGHPUT, TAIL = "throughput_tps", "latency_ms_p99"


@dataclass(frozen=True)
class Acceptance:
    """The decision on a variant and, sentence by sentence, why."""

    is_accepted: bool
    reasons: tuple[str, ...]


def promises(
    verdicts: Sequence[Verdict], variant: str, *, max_loss: float, parts: Sequence[Part] = ()
) -> bool:
    """Whether a variant is worth measuring afresh: ``accept`` without the tail of latency.

    The tail takes far more data than throughput; it is judged where all the remaining time goes.
    """
    judged = [verdict for verdict in verdicts if verdict.metric != TAIL]
    return accept(judged, variant, max_loss=max_loss, parts=parts).is_accepted


def accept(
    verdicts: Sequence[Verdict], variant: str, *, max_loss: float, parts: Sequence[Part] = ()
) -> Acceptance:
    """Judge ``variant`` by the verdicts of one experiment, and by the ``parts`` that it was measured in.

    It is accepted if throughput is better on at least one workload and, on every workload, a loss beyond
    ``max_loss`` (0.05 = 5 %) is excluded for throughput and for the 99th percentile of latency. That is a
    question with one side, so the bound is the one-sided one: the end of the interval that TOST uses (90 %
    for a level of 95 %). A verdict that is withheld, or has no interval, excludes nothing.
    Nor is it if one of the steps that lead to it is shown to be slower than the one before.
    Source: non-inferiority, Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15.
    """
    own = [verdict for verdict in verdicts if verdict.variant == variant]
    better = [v for v in own if v.metric == THROUGHPUT and v.decision is Decision.BETTER]
    risks = [sentence for v in own if (sentence := _possible_loss(v, max_loss))]
    risks += _costly_steps(parts)
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


def _costly_steps(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return which steps of a chain are shown to cost throughput, a sentence each.

    A layer that makes a server slower is not kept because others make up for it.
    """
    return tuple(
        f"{verdict.variant} is slower than {verdict.baseline} on {verdict.workload} ({verdict.reason}): "
        "leave that layer out"
        for part in parts
        for verdict in part.verdicts
        if verdict.metric == THROUGHPUT and verdict.decision is Decision.WORSE
    )


def _possible_loss(verdict: Verdict, max_loss: float) -> str | None:
    """Return which loss beyond the limit the interval leaves possible, or None."""
    if verdict.metric not in (THROUGHPUT, TAIL):
        return None
    if verdict.equivalence is None or verdict.is_withheld:
        return f"{verdict.workload}: nothing is known about {verdict.metric} ({verdict.reason})"
    bounds = verdict.equivalence.interval
    if verdict.metric == THROUGHPUT:
        loss, what = 1 - bounds.low, "throughput may have fallen"
    else:
        loss, what = bounds.high - 1, "p99 latency may have risen"
    return f"{verdict.workload}: {what} by {loss:.1%} (limit {max_loss:.0%})" if loss > max_loss else None
