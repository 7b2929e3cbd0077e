"""What each layer of a plan adds, as plain text: the configurations between the baseline and it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.model.experiment import Experiment
from pgdyno.model.verdict import Verdict
from pgdyno.report import numbers
from pgdyno.report.words import PRIMARY_METRIC


def layers_text(trial: Experiment, layers: Sequence[str]) -> str:
    """Return a line for each configuration and workload; nothing for a plan of one layer.

    ``layers`` are the configurations in order, the whole plan last.
    """
    if len(layers) < 2:
        return ""
    head = f"Layer by layer, throughput against {trial.baseline} in the trial ({trial.id}):"
    return "\n".join([head, *_lines(trial, layers)]) + "\n"


def _lines(trial: Experiment, layers: Sequence[str]) -> Iterator[str]:
    found = {(one.variant, one.workload): one for one in trial.verdicts if one.metric == PRIMARY_METRIC}
    width = max(map(len, layers))
    for layer in layers:
        for place, workload in enumerate(trial.workloads):
            if (verdict := found.get((layer, workload))) is not None:
                yield f"  {layer if place == 0 else '':{width}}  {workload:22}  {_effect(verdict)}"


def _effect(verdict: Verdict) -> str:
    if verdict.effect is None or verdict.interval is None:
        return f"{verdict.decision.value}: {verdict.reason}"
    low, high = verdict.interval.low, verdict.interval.high
    effect = numbers.change_within(verdict.effect, low, high)
    return f"{effect} ({numbers.change_range(low, high)}), {verdict.decision.value}"
