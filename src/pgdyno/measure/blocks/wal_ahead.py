"""Says where servers had to create WAL segments while they were measured."""

from __future__ import annotations

from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.metric import WAL_SEGMENTS


def wal_notes(experiment: Experiment) -> tuple[str, ...]:
    """Return a note for each workload in whose blocks servers created WAL segments; steps have none."""
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
        f"{workload}: servers had to create WAL segments in {len(blocks)} of {everything} blocks ({listed}); "
        "all clients wait for each, which widens the tail of latency"
    )
