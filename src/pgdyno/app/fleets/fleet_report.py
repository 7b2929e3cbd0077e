"""One report from experiments of several machines, from bundles or from the store."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgdyno.app.fleets.run_fleet import kept_bundles
from pgdyno.app.local_machine import workspace
from pgdyno.app.results.given_experiment import given_experiment
from pgdyno.app.results.report import file_name
from pgdyno.experiments.fleets.fleet import combine
from pgdyno.experiments.fleets.fleet_members import Given
from pgdyno.experiments.fleets.found import found_in
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.fleet import Fleet
from pgdyno.report.page.fleet_page import render_fleet
from pgdyno.store.files import write_whole
from pgdyno.store.fleet_file import read_fleet_file

_FLEET = ".toml"
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,39})=(.+)")


def combine_experiments(references: Sequence[str]) -> Fleet:
    """Return a fleet; each reference is a bundle's file or a stored id, or NAME= and one of them.

    Or the only one is the file of a fleet that was run: FLEET.toml.
    Raises: UsageError if they cannot be combined; StorageError for a bundle with which anything is wrong, and
    for an unknown id.
    """
    if [Path(one).suffix for one in references] == [_FLEET]:
        with _no_search_for_cycles():
            return combine(_of_fleet(Path(references[0])))
    return combine([_given(reference) for reference in references])


def write_fleet(fleet: Fleet, destination: Path | None = None) -> Path:
    """Write the report and return its path: next to the store, with the newest experiment's id in its name.

    Raises: StorageError if it cannot be written.
    """
    newest = max(
        (one for machine in fleet.machines for one in machine.experiments), key=lambda one: one.created
    )
    path = destination or workspace().experiments() / f"{file_name(f'fleet-{newest.experiment}')}.html"
    write_whole(path, render_fleet(fleet).encode())
    return path


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Stop Python's search for cyclic garbage: all findings are kept, and it looks at each many times."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _of_fleet(file: Path) -> list[Given]:
    """Return the bundles that a fleet has so far. Raises: UsageError if it has none."""
    order = read_fleet_file(file)
    kept = kept_bundles(order, lambda _: None)
    if not kept:
        raise UsageError(
            f'the fleet "{order.name}" has no bundles yet',
            hint=f"pgdyno fleet run {file} has its machines measure",
        )
    return [Given(order.bundle_name(machine), machine, found_in(one)) for machine, one in kept.items()]


def _given(reference: str) -> Given:
    named = None if Path(reference).is_file() else _NAMED.fullmatch(reference)
    name, source = (named[1], named[2]) if named else (None, reference)
    return Given(source, name, found_in(given_experiment(source)))
