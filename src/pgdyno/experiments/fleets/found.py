"""From an experiment to its finding: its verdicts, conditions and machine. Pure.

That is most of the work of a fleet's report. Of a fleet's trials it is done once, when they are answered.
"""

from __future__ import annotations

import hashlib
import json

from pgdyno.experiments.fleets.hardware import TOLD
from pgdyno.experiments.machines.recorded_facts import fact_at
from pgdyno.experiments.machines.same_experiment import work_of
from pgdyno.experiments.verdicts.analysis import judge, mean_effect
from pgdyno.experiments.verdicts.durability import withhold
from pgdyno.model.document import to_document
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.fleets.finding import Compared, FleetFinding, FoundComparison, FoundEffect, LogRatio
from pgdyno.model.hosts.kernel_file import display_name
from pgdyno.model.servers.secrets import REDACTED
from pgdyno.model.variants.variant import Variant

SIMULATED = "SIMULATED: "
_OWN_SERVER = "the experiment's own"
_MAJOR = 10_000  # server_version_num counts minor versions below it


def found_in(experiment: Experiment) -> FleetFinding:
    """Return an experiment's finding. One that compares nothing, or has no speed, has no comparisons."""
    memory = fact_at(experiment.host, "memory.total_bytes")
    told = {subject: tell(experiment) for subject, tell in TOLD.items()}
    design = experiment.design
    return FleetFinding(
        experiment=experiment.id,
        created=experiment.created,
        question=experiment.question,
        blocks_sha256=_sha256(experiment),
        facts={subject: value for subject, value in told.items() if value is not None},
        memory_bytes=memory if isinstance(memory, int) else None,
        level=design.level,
        power=design.power,
        equivalence_margin=design.equivalence_margin,
        stopping=design.stopping,
        is_complete=experiment.is_complete,
        notes=tuple(note for note in experiment.notes if note.startswith(SIMULATED)),
        unsafe_settings={
            one.name: tuple(one.unsafe_settings) for one in experiment.variants if not one.is_durable
        },
        parts=tuple(part.experiment for part in experiment.parts),
        emulated_machine=experiment.emulated_machine or None,
        comparisons=() if experiment.parts or experiment.emulated_machine else _comparisons(experiment),
    )


def _comparisons(experiment: Experiment) -> tuple[FoundComparison, ...]:
    of = (Compared(one.workload, one.baseline, one.variant) for one in experiment.verdicts)
    asked = tuple(dict.fromkeys(of))
    verdicts = {
        workload: _own_verdicts(experiment, workload) for workload in dict.fromkeys(c.workload for c in asked)
    }
    return tuple(
        FoundComparison(
            compared,
            _conditions(compared, experiment),
            experiment.operation(compared.workload),
            {
                one.metric: FoundEffect(one, _effect(experiment, one))
                for one in verdicts[compared.workload]
                if one.variant == compared.variant
            },
        )
        for compared in asked
    )


def _own_verdicts(experiment: Experiment, workload: str) -> tuple[Verdict, ...]:
    """Return the verdicts on a workload, each as if it were the only one."""
    judged = judge(
        experiment.blocks,
        workloads=[workload],
        variants=[one.name for one in experiment.variants],
        baseline=experiment.baseline,
        design=experiment.design,
    )
    return tuple(withhold(judged, experiment))


def _effect(experiment: Experiment, of: Verdict) -> LogRatio | None:
    if of.interval is None:
        return None
    found = mean_effect(experiment, of.workload, of.metric, of.variant)
    return LogRatio(float(found.mean), float(found.standard_error), float(found.df))


def _conditions(compared: Compared, experiment: Experiment) -> dict[str, str | None]:
    """Return all that defines a comparison, by subject; None: not recorded."""
    number = fact_at(experiment.server, "version_num")
    variants = {one.name: one for one in experiment.variants}
    return {
        **work_of(compared.workload, experiment),
        "way of measuring": experiment.design.kind,
        "phase": experiment.design.phase,
        "PostgreSQL's major version": str(number // _MAJOR) if isinstance(number, int) else None,
        **_of_variant(variants[compared.baseline]),
        **_of_variant(variants[compared.variant]),
    }


def _of_variant(variant: Variant) -> dict[str, str | None]:
    """Return its settings; of another server than the experiment's own only the name is recorded."""
    settings = {
        f"{display_name(name)} of {variant.name}": None if value == REDACTED else value
        for name, value in variant.settings.items()
    }
    return {f"server of {variant.name}": None if variant.server else _OWN_SERVER, **settings}


def _sha256(experiment: Experiment) -> str:
    return hashlib.sha256(json.dumps(to_document(experiment.blocks)).encode()).hexdigest()
