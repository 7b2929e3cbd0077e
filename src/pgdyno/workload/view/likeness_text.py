"""Likeness of a replayed workload to its original, as sentences and as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.likeness import Likeness, likeness_words
from pgdyno.report.elements.tables import NOTHING, Column, Table


def likeness_sentences(experiment: Experiment) -> Iterator[str]:
    """Yield a sentence for each captured workload whose likeness is known."""
    for workload, found in experiment.likenesses.items():
        sentence = likeness_words(found)
        yield f"{workload}: {sentence[0].lower()}{sentence[1:]}"


def likeness_table(found: Likeness) -> Table:
    """Return a table of each statement's shares and time per call, in the original and in the replay."""
    quantities = tuple(one for one in found.by_quantity if one not in found.of_transactions)
    columns = (
        Column("Statement"),
        *(Column(quantity, is_number=True) for quantity in quantities),
        Column("ms/call", is_number=True),
    )
    rows = tuple(
        (
            one.name,
            *(f"{one.original[quantity]:.1%} → {one.replay[quantity]:.1%}" for quantity in quantities),
            f"{one.original_ms:.3f} → {NOTHING if one.replay_ms is None else f'{one.replay_ms:.3f}'}",
        )
        for one in sorted(found.statements, key=lambda one: -one.original.get("time", one.original["calls"]))
    )
    return Table("Each statement's share of the server's counts, original → replay", columns, rows)
