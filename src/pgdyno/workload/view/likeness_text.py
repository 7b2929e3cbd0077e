"""Likeness of a replayed workload to its original, as sentences and as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.likeness import LEAST_LIKENESS, Likeness, StatementLikeness
from pgdyno.report.elements.tables import NOTHING, Column, Table


def likeness_sentences(experiment: Experiment) -> Iterator[str]:
    """Yield a sentence for each captured workload whose likeness is known."""
    for workload, found in experiment.likenesses.items():
        sentence = likeness_words(found)
        yield f"{workload}: {sentence[0].lower()}{sentence[1:]}"


def likeness_words(found: Likeness) -> str:
    """Return the smallest likeness, that of each quantity, and a verdict."""
    least = min(found.by_quantity, key=lambda quantity: found.by_quantity[quantity])
    values = ", ".join(f"{quantity} {value:.2f}" for quantity, value in found.by_quantity.items())
    verdict = "this is the workload"
    if found.least < LEAST_LIKENESS:
        where = _most_different(found, least)
        kind = "a different" if found.is_another_workload else "a similar"
        verdict = f"this is {kind} workload, which differs most in {least}{where}"
    return f"Likeness {found.least:.2f} ({values}): {verdict}"


def _most_different(found: Likeness, quantity: str) -> str:
    """Return a phrase on the statement with the largest difference in its share of a quantity."""

    def distance(one: StatementLikeness) -> float:
        return abs(one.original[quantity] - one.replay[quantity])

    if not found.statements:
        return ""
    one = max(found.statements, key=distance)
    return f", above all for {one.name} (share {one.original[quantity]:.1%} → {one.replay[quantity]:.1%})"


def likeness_table(found: Likeness) -> Table:
    """Return a table of each statement's shares and time per call, in the original and in the replay."""
    quantities = tuple(found.by_quantity)
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
