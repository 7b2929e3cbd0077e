"""Notes for the reader of an experiment, in addition to its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.measure.decisions.stopping import counts_nothing, is_too_noisy, typical_void_reason, void_share
from pgdyno.measure.design.phase import phase_note
from pgdyno.measure.verdicts.analysis import seat_effects
from pgdyno.measure.verdicts.durability import is_hopeless
from pgdyno.model.experiments.experiment import Design, Experiment, LoadHosts
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload

_NOTED_SPREAD = 0.02  # arbitrary


def noise_note(experiment: Experiment) -> tuple[str, ...]:
    """Return a note if too many blocks are void."""
    design = experiment.design
    if not is_too_noisy(experiment.blocks, design):
        return ()
    share, limit = void_share(experiment.blocks), design.thresholds.void_block_share
    why = typical_void_reason(experiment.blocks)
    consequence = (
        "nothing counts, so measuring stopped early"
        if counts_nothing(experiment.blocks)
        else "rounds were repeated"
    )
    note = (
        f"machine too noisy: {numbers.share(share, 0)} of the blocks are void (limit "
        f"{numbers.share(limit, 0)}), for example because {why}; {consequence}; repeat it when the "
        "machine is less busy"
    )
    return (note,)


def hopeless_note(experiment: Experiment) -> tuple[str, ...]:
    """Return a note if measuring ended early because no verdict was possible."""
    if not is_hopeless(experiment):
        return ()
    return ("measuring stopped early: the servers are not equally durable, so no verdict is possible",)


def seat_note(experiment: Experiment) -> tuple[str, ...]:
    """Return a note on the seat effect, if it was large and was removed from the intervals."""
    names = [variant.name for variant in experiment.variants]
    found = {
        workload: seat_effects(experiment.blocks, workload, THROUGHPUT, names, experiment.design)
        for workload in experiment.workloads
    }
    listed = ", ".join(
        f"{numbers.share(effects.spread, 0)} on {workload}"
        for workload, effects in found.items()
        if effects is not None and effects.spread >= _NOTED_SPREAD
    )
    if not listed:
        return ()
    note = (
        f"the fastest of {len(names)} places (data copy and order of start) was faster than the slowest by "
        f"{listed}; servers rotated through the places, and the verdicts' intervals exclude this effect"
    )
    return (note,)


def durability_marks(study: Study) -> tuple[str, ...]:
    """Return a note on variants that may lose data."""
    unsafe = [f"{v.name}: {setting}" for v in study.variants for setting in v.unsafe_settings]
    return (f"NOT DURABLE: {'; '.join(unsafe)}",) if unsafe else ()


def method_notes(workloads: Sequence[Workload], design: Design) -> tuple[str, ...]:
    """Return notes on the checkpoint phase that write workloads' figures cover, and on generated rows."""
    is_charged = any(not workload.is_read_only and not workload.step for workload in workloads)
    others = (f"{one.name} runs on {one.data_set.rows}" for one in workloads if one.data_set.rows)
    return (*((phase_note(design),) if is_charged else ()), *dict.fromkeys(others))


def step_labels(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """Return labels of how steps run; figures are comparable only if these are equal."""
    return tuple(dict.fromkeys(workload.step.label for workload in workloads if workload.step))


def with_load_hosts(experiment: Experiment, names: Sequence[str], first_round: int) -> Experiment:
    """Return the experiment with its load from these hosts since a round, and a note if they changed."""
    before = experiment.load_hosts
    if not names or (before and before[-1].names == tuple(names)):
        return experiment
    entry = LoadHosts(first_round, tuple(names))
    notes = (_change_note(before[-1].names, names, first_round),) if before else ()
    return replace(experiment, load_hosts=(*before, entry), notes=(*experiment.notes, *notes))


def loss_note(name: str, number: int, how: str) -> str:
    """Return the note on a load host lost in a round, counted from 1; ``how`` states how it continued."""
    return f'load host "{name}" was lost in round {number}: {how}'


def _change_note(before: Sequence[str], names: Sequence[str], first_round: int) -> str:
    return (
        f"from round {first_round + 1} on, the load came from {_listed(names)}, before from "
        f"{_listed(before)}, with the same total of clients. Variants are compared within rounds, so the "
        "change does not affect differences; a single variant's figures mix both loads"
    )


def _listed(names: Sequence[str]) -> str:
    """Return names in quotes after the word host: the form that bundles redact."""
    return " and ".join(f'host "{name}"' for name in names)
