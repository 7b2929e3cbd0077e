"""Compare servers' answers to the same statements of a captured workload, before it is measured.

A server that gives different answers is not faster. Only read-only statements are compared. A statement with
LIMIT may return any of several rows, so only its number of rows is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.captured_samples import sampled_statements
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.inspection.named_objects import read_writing_functions
from pgdyno.postgres.sampling.prepared_plans import ResultChecksum, result_checksums
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.workload.capture.statements import has_limit, reads_alone

_SAMPLES = 5  # of each statement: arbitrary, takes a few milliseconds
_Answers = Mapping[str, tuple[ResultChecksum | None, ...]]


def answers_compared(
    experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
) -> Experiment:
    """Return the experiment with notes on statements that a variant answers differently than the baseline.

    Raises: errors of servers and generators.
    """
    notes: list[str] = []
    for workload in workloads:
        is_cell = workload.cell is not None or workload.rate_tps is not None  # compared for another workload
        if workload.captured is not None and not is_cell and len(experiment.variants) > 1:
            progress.step(f"comparing answers to statements of {workload.name}")
            notes += _notes(experiment, arena, workload)
    return replace(experiment, notes=tuple(dict.fromkeys((*experiment.notes, *notes))))


def _notes(experiment: Experiment, arena: Arena, workload: Workload) -> Iterator[str]:
    baseline = next(one for one in experiment.variants if one.name == experiment.baseline)
    samples: list[PreparedStatement] = []
    expected = _answers(arena, baseline, workload, samples)
    again = _answers(arena, baseline, workload, samples)
    # Answers with now() and the like vary between runs; failures carry no information.
    stable = {
        name: answers
        for name, answers in expected.items()
        if any(answers) and not _differ(answers, again[name])
    }
    for variant in experiment.variants:
        if variant is baseline:
            continue
        found = _answers(arena, variant, workload, samples)
        if differing := [name for name, answers in stable.items() if _differ(answers, found[name])]:
            yield (
                f"{', '.join(differing)} of {workload.name}: answered otherwise by {variant.name} than by "
                f"{baseline.name}, with the same rows and parameters"
            )
    compared = "one statement" if len(stable) == 1 else f"{len(stable)} statements"
    yield f"answers to {compared} of {workload.name} were compared on all servers before measuring"


def _answers(
    arena: Arena, variant: Variant, workload: Workload, samples: list[PreparedStatement]
) -> _Answers:
    """Return a checksum for each call of each statement; fill ``samples`` if empty."""
    arena.restore([variant], [0], workload.data_set)
    try:
        with arena.arms([variant], [0], workload.data_set, workload.server_memory_bytes) as (arm,):
            return _answers_of(arena, arm, workload, samples)
    finally:
        arena.discard([variant], [0], workload.data_set)


def _answers_of(arena: Arena, arm: Arm, workload: Workload, samples: list[PreparedStatement]) -> _Answers:
    if not samples:
        with closing(arena.loads.connect(arm, workload)) as connection:
            found = sampled_statements(connection, workload, arena.loads.find_driver())
            writing = read_writing_functions(connection)
        samples += [one for one in found if reads_alone(one.sql, writing)]
    with closing(arena.loads.connect(arm, workload)) as connection:
        return {one.name: _comparable(one, result_checksums(connection, one, _SAMPLES)) for one in samples}


def _comparable(
    statement: PreparedStatement, answers: Sequence[ResultChecksum | None]
) -> tuple[ResultChecksum | None, ...]:
    """Return the comparable part of answers: only the number of rows for a LIMIT."""
    if not has_limit(statement.sql):
        return tuple(answers)
    return tuple(None if one is None else replace(one, checksum=0) for one in answers)


def _differ(first: Sequence[ResultChecksum | None], second: Sequence[ResultChecksum | None]) -> bool:
    """Whether two servers' answers differ, except for calls that failed or took too long."""
    return any(None not in pair and pair[0] != pair[1] for pair in zip(first, second, strict=True))
