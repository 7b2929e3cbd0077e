"""One report on experiments of several machines, from bundles or from the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.measure.view.wording import SIGNS, direction_hint, metric_of
from pgdyno.model.experiments.fleet import MACHINE_NAME, Fleet, FleetComparison
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.report.charts.forest import ForestGroup, forest_plot
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.html import render
from pgdyno.report.elements.tables import Figure, Table, columns, figure
from pgdyno.results.fleets.fleet import combine
from pgdyno.results.fleets.fleet_members import Member
from pgdyno.results.fleets.fleet_sentences import (
    answer,
    experiment_table,
    forest_rows,
    grouped,
    headline,
    leading,
    machine_table,
    method_notes,
    others_table,
    remarks,
    title,
)
from pgdyno.results.fleets.run_fleet import kept_bundles
from pgdyno.results.report import drawing, file_name
from pgdyno.results.stored import given_experiment
from pgdyno.store.files import write_whole
from pgdyno.store.fleet_file import read_fleet_file

_WHAT = "these experiments"
_PAGE = "fleet.html.j2"


@dataclass(frozen=True)
class _Section:
    """One workload and variant: the forest plot, remarks, other metrics."""

    title: str
    forest: Figure
    remarks: tuple[str, ...]
    others: Table | None


def combine_experiments(references: Sequence[str]) -> Fleet:
    """Return a fleet. Each reference is a bundle's file or a stored id, optionally preceded by NAME=.

    A single reference may also be the file of a fleet that was run: FLEET.toml.
    Raises: UsageError if they cannot be combined; StorageError for an invalid bundle or an unknown id.
    """
    first, *others = references
    is_fleet = Path(first).suffix == ".toml" and not others
    members = _of_fleet(Path(first)) if is_fleet else [*map(_given, references)]
    with drawing(_WHAT):
        return combine(members)


def write_fleet(fleet: Fleet, destination: Path | None = None) -> Path:
    """Write the report and return its path; by default next to the store, named by the newest experiment.

    Raises: StorageError if it cannot be rendered or written.
    """
    experiments = [one for machine in fleet.machines for one in machine.experiments]
    newest = max(experiments, key=lambda one: one.created).experiment
    path = destination or workspace().experiments() / f"{file_name(f'fleet-{newest}')}.html"
    with drawing(_WHAT):
        page = render_fleet(fleet)
    write_whole(path, page.encode())
    return path


def _of_fleet(file: Path) -> list[Member]:
    """Return the experiments of a fleet's bundles so far. Raises: UsageError if it has none."""
    order = read_fleet_file(file)
    kept = kept_bundles(order, lambda _: None)
    if not kept:
        raise UsageError(
            f'the fleet "{order.name}" has no bundles yet',
            hint=f"measure its machines: pgdyno fleet run {file}",
        )
    return [Member(order.bundle_name(machine), machine, one) for machine, one in kept.items()]


def _given(reference: str) -> Member:
    name, is_named, source = reference.partition("=")
    if Path(reference).is_file() or not (is_named and MACHINE_NAME.fullmatch(name)):
        name, source = "", reference
    return Member(source, name, given_experiment(source))


def render_fleet(fleet: Fleet) -> str:
    """Return the whole page."""
    sections = [
        _Section(
            title(first), _figure(first, fleet.margin, number), (*remarks(first, fleet),), others_table(ones)
        )
        for number, (first, ones) in enumerate(zip(leading(fleet), grouped(fleet), strict=True))
    ]
    return render(
        _PAGE,
        fleet=fleet,
        headline=headline(fleet),
        answer=answer(fleet),
        machines=machine_table(fleet.machines),
        experiments=experiment_table(fleet.machines),
        sections=sections,
        notes=method_notes(fleet),
        signs=SIGNS,
        margin=numbers.share(fleet.margin),
    )


def _figure(one: FleetComparison, margin: float, number: int) -> Figure:
    metric = metric_of(one.metric, one.operation)
    rows = tuple(forest_rows(one))
    group = ForestGroup(metric.title, direction_hint(metric), rows)
    cells = tuple((row.label, row.effect, row.bounds, row.decision_text) for row in rows)
    caption = Caption(f"fleet-{number}", title(one), "; ".join(" ".join(filter(None, row)) for row in cells))
    table = Table(title(one), columns("", "effect", "interval", "verdict", numbers_from=1), cells)
    return figure(
        lambda width: forest_plot(caption, [group], margin=margin, width=width), table, title=title(one)
    )
