"""Conclude an experiment from its blocks: void blocks, verdicts, and notes for the reader. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pgdyno.measure.blocks.disturbance import judge_again, with_disturbance_notes
from pgdyno.measure.decisions.notes import hopeless_note, noise_note, seat_note
from pgdyno.measure.verdicts.analysis import analyse
from pgdyno.measure.verdicts.durability import withhold
from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.metric import WAL_SEGMENTS
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.experiments.workload import Workload


def concluded(
    measured: Experiment, study: Study, workloads: Mapping[str, Workload], *, is_complete: bool
) -> Experiment:
    """Return the experiment with verdicts and notes; a complete one records the number of rounds done."""
    experiment = with_disturbance_notes(judge_again(measured))
    design = replace(experiment.design, rounds=max(1, rounds_done(experiment)))
    return replace(
        _without_unmeasured(experiment) if is_complete else experiment,
        design=design if is_complete else experiment.design,
        verdicts=verdicts_on(experiment, study, workloads),
        notes=(
            *experiment.notes,
            *noise_note(experiment),
            *seat_note(experiment),
            *hopeless_note(experiment),
            *(wal_notes(experiment) if is_complete else ()),
        ),
        is_complete=is_complete,
    )


def verdicts_on(
    experiment: Experiment, study: Study, workloads: Mapping[str, Workload]
) -> tuple[Verdict, ...]:
    """Return the verdicts; none on workloads with a given rate, which cannot run faster."""
    verdicts = analyse(
        experiment.blocks,
        workloads=[name for name in study.workloads if workloads[name].rate_tps is None],
        variants=[variant.name for variant in study.variants],
        baseline=study.baseline,
        design=study.design,
    )
    return withhold(verdicts, experiment)


def rounds_done(experiment: Experiment) -> int:
    """Return the number of rounds that have blocks."""
    return max((block.round + 1 for block in experiment.blocks), default=0)


def _without_unmeasured(experiment: Experiment) -> Experiment:
    """Return the experiment without cells that no round measured, because no knee needed them."""
    measured = {block.workload for block in experiment.blocks}
    names = tuple(name for name in experiment.workloads if name in measured or name not in experiment.cells)
    cells = {name: cell for name, cell in experiment.cells.items() if name in measured}
    return replace(experiment, workloads=names, cells=cells)


def wal_notes(experiment: Experiment) -> tuple[str, ...]:
    """Return a note for each workload, steps excepted, during which servers created WAL segments."""
    found = ((name, _created(experiment, name)) for name in experiment.workloads)
    steps = experiment.operations
    return tuple(_note(experiment, name, blocks) for name, blocks in found if blocks and name not in steps)


def _created(experiment: Experiment, workload: str) -> list[Block]:
    return [block for block in experiment.blocks if block.workload == workload and _of_block(block)]


def _of_block(block: Block) -> float:
    return sum(arm.values.get(WAL_SEGMENTS, 0.0) for arm in block.arms)


def _note(experiment: Experiment, workload: str, blocks: list[Block]) -> str:
    everything = sum(block.workload == workload for block in experiment.blocks)
    counts = {
        variant.name: sum(
            arm.values.get(WAL_SEGMENTS, 0.0)
            for block in blocks
            for arm in block.arms
            if arm.variant == variant.name
        )
        for variant in experiment.variants
    }
    listed = ", ".join(f"{name} {count:.0f}" for name, count in counts.items())
    return (
        f"{workload}: servers created WAL segments in {len(blocks)} of {everything} blocks ({listed}); "
        "all clients wait for each of them, which lengthens the latency tail"
    )
