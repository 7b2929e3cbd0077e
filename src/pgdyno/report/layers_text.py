"""What each layer of a plan is worth, as plain text: the whole plan beside the plan without it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.model.experiment import Experiment
from pgdyno.model.verdict import Verdict
from pgdyno.report import numbers
from pgdyno.report.words import PRIMARY_METRIC


def layers_text(experiment: Experiment, variants: Sequence[str]) -> str:
    """Return a line for each of these variants and workload; nothing for one variant alone.

    ``variants`` are the whole plan, and the plan without each of its layers.
    """
    if len(variants) < 2:
        return ""
    head = (
        f"What each layer is worth: throughput against {experiment.baseline}, of the plan and without a layer"
    )
    return "\n".join([f"{head}:", *_lines(experiment, variants)]) + "\n"


def _lines(experiment: Experiment, variants: Sequence[str]) -> Iterator[str]:
    found = {(one.variant, one.workload): one for one in experiment.verdicts if one.metric == PRIMARY_METRIC}
    width = max(map(len, variants))
    for name in variants:
        for place, workload in enumerate(experiment.workloads):
            if (verdict := found.get((name, workload))) is not None:
                yield f"  {name if place == 0 else '':{width}}  {workload:22}  {_effect(verdict)}"


def _effect(verdict: Verdict) -> str:
    if verdict.effect is None or verdict.interval is None:
        return f"{verdict.decision.value}: {verdict.reason}"
    low, high = verdict.interval.low, verdict.interval.high
    effect = numbers.change_within(verdict.effect, low, high)
    return f"{effect} ({numbers.change_range(low, high)}), {verdict.decision.value}"
