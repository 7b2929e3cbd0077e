"""The load hosts of an experiment, and notes for its reader where they change. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.load_hosts import LoadHosts


def with_load_hosts(experiment: Experiment, names: Sequence[str], first_round: int) -> Experiment:
    """Return the experiment with its load from these hosts from a round on, and a note if they change."""
    before = experiment.load_hosts
    if not names or (before and before[-1].names == tuple(names)):
        return experiment
    entry = LoadHosts(first_round, tuple(names))
    notes = (_change_note(before[-1].names, names, first_round),) if before else ()
    return replace(experiment, load_hosts=(*before, entry), notes=(*experiment.notes, *notes))


def loss_note(name: str, number: int, how: str) -> str:
    """Return the note on a load host that was lost in a round, counted from 1, and how it went on."""
    return f'load host "{name}" was lost in round {number}: {how}'


def _change_note(before: Sequence[str], names: Sequence[str], first_round: int) -> str:
    return (
        f"from round {first_round + 1} on, the load came from {_listed(names)}, before from "
        f"{_listed(before)}, with as many clients in all. Variants are compared within a round, so that no "
        "difference is one of hosts; figures of one variant alone are of both loads"
    )


def _listed(names: Sequence[str]) -> str:
    """Return names, in quotes after the word host, so that bundles hide them."""
    return " and ".join(f'host "{name}"' for name in names)
