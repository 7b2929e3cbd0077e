"""Experiments that lead on from each other, put together: what each step adds, and all of them. Pure.

    part 1    default → application                 in turns
    part 2    application → application+system      whole trials: the machine has one value at a time
    part 3    application+system → plan             in turns, the machine as both want it
    in all    default → plan                        the product of the parts' ratios

Why the parts may be multiplied, and what has to hold for it: decision 19.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice, pairwise

from pgdyno.experiments.analysis import judge, log_ratios, verdict_metrics
from pgdyno.experiments.durability import doubts, withheld, withhold
from pgdyno.model.experiment import Experiment, Part
from pgdyno.model.metric import Metric
from pgdyno.model.verdict import Verdict
from pgdyno.stats.decision import adjust, decide_product


def parts_of(experiments: Sequence[Experiment], paths: Sequence[Sequence[str]]) -> tuple[Part, ...]:
    """Return experiments as parts, each by its path: its variants in order, each against the one before.

    They are shown together, and are corrected by Holm for their number in all parts.
    """
    judged = [_judged(one, path) for one, path in zip(experiments, paths, strict=True)]
    adjusted = iter(adjust(list(chain.from_iterable(judged))))
    return tuple(
        Part(one.id, one.design.kind, one.design.rounds, tuple(path), tuple(islice(adjusted, len(verdicts))))
        for one, path, verdicts in zip(experiments, paths, judged, strict=True)
    )


def _judged(experiment: Experiment, path: Sequence[str]) -> list[Verdict]:
    return [
        verdict
        for before, variant in pairwise(path)
        for verdict in withhold(
            judge(
                experiment.blocks,
                workloads=experiment.workloads,
                variants=(before, variant),
                baseline=before,
                design=experiment.design,
            ),
            experiment,
        )
    ]


def product_verdicts(experiments: Sequence[Experiment], ends: Sequence[str]) -> tuple[Verdict, ...]:
    """Return the verdicts on where the last experiment ends, against where the first one begins.

    ``ends`` names the variant that each of them ends with: the baseline of the next one. Corrected by Holm.
    """
    verdicts = [
        _product_verdict(experiments, ends, workload, metric)
        for workload in experiments[0].workloads
        for metric in verdict_metrics()
    ]
    return tuple(adjust(verdicts))


def _product_verdict(
    experiments: Sequence[Experiment], ends: Sequence[str], workload: str, metric: Metric
) -> Verdict:
    steps = {
        f"{end} against {experiment.baseline}": _by_round(experiment, workload, metric, end)
        for experiment, end in zip(experiments, ends, strict=True)
    }
    design = experiments[0].design
    verdict = decide_product(
        steps,
        workload=workload,
        metric=metric,
        variant=ends[-1],
        baseline=experiments[0].baseline,
        level=design.level,
        equivalence_margin=design.equivalence_margin,
        power=design.power,
        void_blocks=sum(
            1
            for experiment, end in zip(experiments, ends, strict=True)
            for block in experiment.blocks
            if block.workload == workload and block.void_for(end, experiment.baseline)
        ),
    )
    why = [
        doubt
        for experiment, end in zip(experiments, ends, strict=True)
        for doubt in doubts(experiment, experiment.baseline, end)
    ]
    return withheld(verdict, why) if why else verdict


def _by_round(experiment: Experiment, workload: str, metric: Metric, end: str) -> list[list[float]]:
    ratios = log_ratios(experiment.blocks, workload, metric.name, end, experiment.baseline)
    return [of_round for _, of_round in sorted(ratios.items())]
