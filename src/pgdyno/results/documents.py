"""Documents of results, as ``--json`` prints them. Pure."""

from __future__ import annotations

from pgdyno.base.document import Json, to_document
from pgdyno.measure.verdicts.degree_settings import degree_settings
from pgdyno.measure.verdicts.durability import warnings
from pgdyno.measure.verdicts.failures import failed_transactions
from pgdyno.measure.verdicts.part_worths import attributions
from pgdyno.measure.verdicts.peer_effects import peer_effects
from pgdyno.measure.verdicts.query_degrees import query_degrees
from pgdyno.measure.verdicts.scaling import scaling_curves
from pgdyno.measure.verdicts.sharing_cost import sharing_costs
from pgdyno.measure.verdicts.steal_adjustment import adjustments
from pgdyno.measure.verdicts.transaction_split import transaction_splits
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.tpch import DISCLAIMER
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.studies.steps.rqps import Result, step_results, variants_of
from pgdyno.studies.tpch.tpch import Relative, lines, plan_comparisons


def comparison_document(experiment: Experiment) -> dict[str, object]:
    """Return the JSON document of a comparison."""
    return {
        "experiment": experiment.id,
        "question": experiment.question,
        "baseline": experiment.baseline,
        "steps": steps_document(experiment),
        "scaling": scaling_document(experiment),
        "sharing_costs": to_document(sharing_costs(experiment)),
        "degree_settings": degree_settings_document(experiment),
        "transaction_splits": splits_document(experiment),
        "tpch": tpch_document(experiment),
        "adjusted_for_stolen_time": adjusted_document(experiment),
        "peers": to_document(peer_effects(experiment)),
        "comparisons": [_comparison(verdict) for verdict in experiment.verdicts],
        "design": to_document(experiment.design),
        "settings": to_document(experiment.settings),
        "durability": durability_document(experiment),
        "awake": to_document(experiment.awake),
        "load_hosts": to_document(experiment.load_hosts),
        "likenesses": {
            name: {"likeness": one.least, "by_quantity": dict(one.by_quantity)}
            for name, one in experiment.likenesses.items()
        },
        "failed_transactions": to_document(failed_transactions(experiment)),
        "void_blocks": [
            {"workload": b.workload, "round": b.round, "block": b.index, "reason": reason}
            for b in experiment.blocks
            for reason in b.void_reasons
        ],
        "blocks": len(experiment.blocks),
        "notes": list(experiment.notes),
        "attribution": to_document(attributions(experiment)),
        "is_complete": experiment.is_complete,
    }


def adjusted_document(experiment: Experiment) -> Json:
    """Return the effects of whole trials adjusted for stolen time, by workload, or why there are none."""
    return to_document(adjustments(experiment))


def tpch_document(experiment: Experiment) -> Json:
    """Return times, runs, best degrees and plans that differ, like TPC-H's; null where the workload is not.

    Times are in seconds, of runs executions per hour; ratios of times are below 1 where it is faster.
    """
    if experiment.tpch is None:
        return None
    variants = variants_of(experiment)
    return to_document(
        {
            "disclaimer": DISCLAIMER,
            "scale": experiment.tpch.scale,
            "streams": experiment.tpch.streams,
            "executions": [
                {
                    "name": line.name,
                    "unit": "s" if line.is_time else "per hour",
                    "figures": dict(zip(variants, line.figures, strict=True)),
                    "relative": [_relative_document(one) for one in line.relative],
                }
                for line in lines(experiment)
            ],
            "best_degrees": query_degrees(experiment),
            "plan_differences": plan_comparisons(experiment),
        }
    )


def _relative_document(one: Relative) -> dict[str, object]:
    return {
        "variant": one.variant,
        "ratio": one.ratio,
        "interval": None if one.interval is None else [one.interval.low, one.interval.high],
        "verdict": None if one.verdict is None else one.verdict.decision,
    }


def scaling_document(experiment: Experiment) -> Json:
    """Return every curve by level with its knee; empty where no level is varied."""
    return to_document(scaling_curves(experiment))


def degree_settings_document(experiment: Experiment) -> Json:
    """Return the workers to set for each query; empty where their number is not varied."""
    return to_document(degree_settings(experiment))


def splits_document(experiment: Experiment) -> Json:
    """Return the parts of a transaction's time, by variant; empty without suitable loads."""
    return to_document(transaction_splits(experiment))


def durability_document(experiment: Experiment) -> dict[str, Json]:
    """Return the servers' durability as read back, with all breaches."""
    return {"readings": to_document(experiment.durability), "warnings": list(warnings(experiment))}


def steps_document(experiment: Experiment) -> list[dict[str, object]]:
    """Return every step with each variant's results; empty where no workload is a step."""
    return [
        {
            "workload": step.workload,
            "step": step.name,
            "operation": step.operation,
            "unit": step.unit,
            "background_target_rows_per_s": step.target_rows_per_s,
            "variants": [_step_result(experiment, one) for one in step.results],
        }
        for step in step_results(experiment)
    ]


def _step_result(experiment: Experiment, one: Result) -> dict[str, object]:
    """Return one variant in one step; where it or the baseline missed its background rate, no ratio."""
    verdict, interval = one.verdict, one.verdict.interval if one.verdict else None
    return {
        "variant": one.variant,
        "is_baseline": one.variant == experiment.baseline,
        "rate": one.rate,
        "relative": verdict.effect if verdict else None,
        "interval": None if interval is None else [interval.low, interval.high],
        "verdict": verdict.decision.value if verdict else None,
        "background_share": one.background_share,
        "is_missed": one.missed is not None,
        "missed_passes": one.missed.passes if one.missed else 0,
        "lowest_background_share": one.missed.lowest if one.missed else None,
        "is_compared": verdict is not None and verdict.effect is not None,
    }


def _comparison(verdict: Verdict) -> dict[str, object]:
    interval = verdict.interval
    return {
        "workload": verdict.workload,
        "metric": verdict.metric,
        "variant": verdict.variant,
        "baseline": verdict.baseline,
        "verdict": verdict.decision.value,
        "effect": verdict.effect,
        "interval": None if interval is None else [interval.low, interval.high],
        "level": None if interval is None else interval.level,
        "mde": verdict.mde,
        "p_value": verdict.p_value,
        "p_adjusted": verdict.p_adjusted,
        "reason": verdict.reason,
        "rounds": verdict.rounds,
        "blocks": verdict.blocks,
        "void_blocks": verdict.void_blocks,
        "components": to_document(verdict.components),
        "checks": dict(verdict.checks),
    }
