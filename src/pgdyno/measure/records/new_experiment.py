"""The record of an experiment before its first round. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pgdyno import __version__
from pgdyno.host.cpu_idling import Awake
from pgdyno.measure.decisions.notes import durability_marks, method_notes, step_labels
from pgdyno.model.experiments.experiment import Experiment, LoadHosts, NoiseFloor
from pgdyno.model.experiments.step_record import TpchFacts
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import TpchStep, Workload
from pgdyno.model.plans.plan import Plan, Terms

_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Context:
    """Additional facts that an experiment records for its reader."""

    host: Mapping[str, object] = field(default_factory=dict)
    server: Mapping[str, object] = field(default_factory=dict)
    plan: Plan | None = None
    noise_floor: tuple[NoiseFloor, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)  # of the study, as requested
    factors: tuple[str, ...] = ()
    awake: Awake | None = None
    burstable_type: str = ""
    terms: Terms | None = None  # terms of the decision on a plan
    allowed_files: tuple[str, ...] = ()  # as in ``Experiment``
    load_hosts: tuple[LoadHosts, ...] = ()  # as in ``Experiment``


def new_experiment(
    study: Study,
    workloads: Sequence[Workload],
    context: Context,
    installation: str | None,
    server_notes: Sequence[str],
) -> Experiment:
    """Return a study's experiment, created now, without any blocks.

    ``installation`` runs the variants that name no server; None if unknown. ``server_notes`` apply to all
    servers.
    """
    now = datetime.now(UTC)
    return Experiment(
        id=experiment_id(now, study.name),
        name=study.name,
        question=study.question,
        created=now.isoformat(timespec="seconds"),
        pgdyno_version=__version__,
        design=study.design,
        variants=study.variants,
        baseline=study.baseline,
        workloads=study.workloads,
        reset_policies={workload.name: workload.reset for workload in workloads},
        scales={workload.name: workload.data_set.scale for workload in workloads},
        generators={workload.name: workload.generator for workload in workloads},
        operations={workload.name: workload.step.operations for workload in workloads if workload.step},
        cells={workload.name: workload.cell for workload in workloads if workload.cell},
        noise_floor=context.noise_floor,
        plan=context.plan,
        host=context.host,
        server=context.server,
        options=context.options,
        factors=context.factors,
        notes=(
            *durability_marks(study),
            *step_labels(workloads),
            *study.notes,
            *server_notes,
            *method_notes(workloads, study.design),
        ),
        installation=installation,
        tpch=tpch_facts(workloads),
        awake=context.awake,
        burstable_type=context.burstable_type,
        terms=context.terms,
        allowed_files=context.allowed_files,
        load_hosts=context.load_hosts,
    )


def tpch_facts(workloads: Sequence[Workload]) -> TpchFacts | None:
    """Return the facts recorded for a TPC-H-like workload; None for other workloads."""
    match workloads[0].kind:
        case TpchStep(clients=streams):
            return TpchFacts(workloads[0].data_set.scale, streams)
    return None


def experiment_id(now: datetime, name: str) -> str:
    """Return the ID of an experiment: its start time and its name."""
    return f"{now:%Y%m%d-%H%M%S}-{_NOT_IN_A_FILE_NAME.sub('-', name)}"
