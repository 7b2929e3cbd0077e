"""Writes the report of an experiment."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.results.page import render_page
from pgdyno.store.documents import dump_experiment, load_experiment
from pgdyno.store.experiments import open_store
from pgdyno.store.files import write_whole
from pgdyno.store.privacy.redaction import without_secrets
from pgdyno.store.tunings import tuning_of

_SHOWN = 400  # characters of an error, which may quote the records


def write_report(experiment: Experiment, destination: Path | None = None) -> Path:
    """Write the report and return its path: next to the store of experiments by default.

    Raises: StorageError if it cannot be drawn or written.
    """
    path = destination or workspace().experiments() / f"{file_name(experiment.id)}.html"
    shown = load_experiment(without_secrets(dump_experiment(experiment)))
    with closing(open_store()) as store:
        is_imported = experiment.id in store.origins()
    tuning = None if is_imported else tuning_of(workspace().experiments(), experiment.id)
    with drawing(f'experiment "{experiment.id}"'):
        page = render_page(shown, is_imported=is_imported, tuning=tuning)
    write_whole(path, page.encode())
    return path


@contextmanager
def drawing(what: str) -> Iterator[None]:
    """Draw a page of records that others may have made.

    Raises: StorageError if their figures cannot be: a bundle holds some that no measurement gives.
    """
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise StorageError(
            f"no page can be drawn of {what}",
            detail=f"{error!r:.{_SHOWN}} ({Path(place.filename).name}:{place.lineno})",
            hint="if it was imported, its records are not what pgdyno has measured: get the bundle again; "
            "if it was measured here, this is a mistake in pgdyno: please report it with these lines",
        ) from error


def file_name(experiment_id: str) -> str:
    """Return a name for an experiment's files, without an ending."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in experiment_id).strip(".")
    return f"pgdyno-{plain}"
