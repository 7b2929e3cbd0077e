"""Compare servers' answers to the same statements of a captured workload, before any of it is measured.

A server that is faster because it answers otherwise is no faster one. Only statements that read are asked.
Where one has a LIMIT, its rows may be any of several; then their number is compared.
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
from pgdyno.postgres.sampling.prepared_answers import AskedRows, ask
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.workload.capture.statements import has_limit, reads_alone

_SAMPLES = 5  # of each statement: arbitrary, some milliseconds
_Answers = Mapping[str, tuple[AskedRows | None, ...]]


def answers_compared(
    experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
) -> Experiment:
    """Return the experiment with a note on each statement that a variant answers otherwise than the baseline.

    Raises: errors of servers and generators.
    """
    notes: list[str] = []
    for workload in workloads:
        is_cell = workload.cell is not None or workload.rate_tps is not None  # asked for in another one
        if workload.captured is not None and not is_cell and len(experiment.variants) > 1:
            progress.step(f"comparing answers to statements of {workload.name}")
            notes += _notes(experiment, arena, workload)
    return replace(experiment, notes=tuple(dict.fromkeys((*experiment.notes, *notes))))


def _notes(experiment: Experiment, arena: Arena, workload: Workload) -> Iterator[str]:
    baseline = next(one for one in experiment.variants if one.name == experiment.baseline)
    samples: list[PreparedStatement] = []
    expected = _answers(arena, baseline, workload, samples)
    again = _answers(arena, baseline, workload, samples)
    # Those of now() and the like are not certain, and failures tell nothing.
    certain = {
        name: answers
        for name, answers in expected.items()
        if any(answers) and not _differ(answers, again[name])
    }
    for variant in experiment.variants:
        if variant is baseline:
            continue
        found = _answers(arena, variant, workload, samples)
        if differing := [name for name, answers in certain.items() if _differ(answers, found[name])]:
            yield (
                f"{', '.join(differing)} of {workload.name}: answered otherwise by {variant.name} than by "
                f"{baseline.name}, on equal rows and with equal parameters"
            )
    asked = "one statement" if len(certain) == 1 else f"{len(certain)} statements"
    yield f"answers to {asked} of {workload.name} were compared on all servers first"


def _answers(
    arena: Arena, variant: Variant, workload: Workload, samples: list[PreparedStatement]
) -> _Answers:
    """Return a checksum for each call of each statement; fill ``samples`` if there are none."""
    arena.restore([variant], [0], workload.data_set)
    try:
        with arena.arms([variant], [0], workload.data_set, workload.server_memory_bytes) as (arm,):
            return _asked(arena, arm, workload, samples)
    finally:
        arena.discard([variant], [0], workload.data_set)


def _asked(arena: Arena, arm: Arm, workload: Workload, samples: list[PreparedStatement]) -> _Answers:
    if not samples:
        with closing(arena.loads.connect(arm, workload)) as connection:
            found = sampled_statements(connection, workload, arena.loads.find_driver())
        samples += [one for one in found if reads_alone(one.sql)]
    with closing(arena.loads.connect(arm, workload)) as connection:
        return {one.name: _compared(one, ask(connection, one, _SAMPLES)) for one in samples}


def _compared(
    statement: PreparedStatement, answers: Sequence[AskedRows | None]
) -> tuple[AskedRows | None, ...]:
    """Return answers as far as they are certain: of a LIMIT only the number of rows is."""
    if not has_limit(statement.sql):
        return tuple(answers)
    return tuple(None if one is None else replace(one, checksum=0) for one in answers)


def _differ(first: Sequence[AskedRows | None], second: Sequence[AskedRows | None]) -> bool:
    """Whether two servers have answered otherwise; calls that failed or took too long tell nothing."""
    return any(None not in pair and pair[0] != pair[1] for pair in zip(first, second, strict=True))
