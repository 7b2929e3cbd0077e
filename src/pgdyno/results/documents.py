"""JSON documents of results, as printed by ``--json``. Pure."""

from __future__ import annotations

from pgdyno.base.facts import Json, to_document
from pgdyno.measure.verdicts.durability import warnings
from pgdyno.measure.verdicts.failures import failed_transactions
from pgdyno.measure.verdicts.part_worths import attributions
from pgdyno.measure.verdicts.peer_effects import peer_effects
from pgdyno.measure.verdicts.scaling import degree_settings, scaling_curves
from pgdyno.measure.verdicts.statements import statement_verdicts
from pgdyno.measure.verdicts.steal_adjustment import adjustments
from pgdyno.measure.verdicts.transaction_split import sharing_costs, transaction_splits
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.studies.views import views


def comparison_document(experiment: Experiment) -> dict[str, object]:
    """Return the JSON document of a comparison."""
    return {
        "experiment": experiment.id,
        "question": experiment.question,
        "baseline": experiment.baseline,
        **{view.NAME: view.document(experiment) for view in views()},
        "scaling": scaling_document(experiment),
        "sharing_costs": to_document(sharing_costs(experiment)),
        "degree_settings": degree_settings_document(experiment),
        "transaction_splits": splits_document(experiment),
        "adjusted_for_stolen_time": adjusted_document(experiment),
        "peers": to_document(peer_effects(experiment)),
        "statements": to_document(statement_verdicts(experiment)),
        "plans": to_document(experiment.plans),
        "schema_changes": to_document(experiment.schema_changes),
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
    """Return the effects of whole trials adjusted for stolen time, by workload, or why they are missing."""
    return to_document(adjustments(experiment))


def scaling_document(experiment: Experiment) -> Json:
    """Return every curve by level with its knee; empty if no level is varied."""
    return to_document(scaling_curves(experiment))


def degree_settings_document(experiment: Experiment) -> Json:
    """Return the number of workers to set for each query; empty if it is not varied."""
    return to_document(degree_settings(experiment))


def splits_document(experiment: Experiment) -> Json:
    """Return the parts of a transaction's time, by variant; empty without suitable loads."""
    return to_document(transaction_splits(experiment))


def durability_document(experiment: Experiment) -> dict[str, Json]:
    """Return the durability settings read back from the servers, and a warning for each breach."""
    return {"readings": to_document(experiment.durability), "warnings": list(warnings(experiment))}


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
