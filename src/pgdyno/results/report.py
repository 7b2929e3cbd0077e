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

_SHOWN = 400  # characters of an error, which may quote the experiment's data


def write_report(experiment: Experiment, destination: Path | None = None) -> Path:
    """Write the report and return its path, by default next to the store of experiments.

    Raises: StorageError if it cannot be rendered or written.
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
    """Convert errors of rendering experiments, which others may have made, to StorageError.

    Raises: StorageError if a figure is impossible: no measurement can yield it, but a bundle may contain it.
    """
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise StorageError(
            f"could not render a report of {what}",
            detail=f"{error!r:.{_SHOWN}} ({Path(place.filename).name}:{place.lineno})",
            hint="if it was imported, its data do not come from a pgdyno measurement: get the bundle again; "
            "if it was measured here, this is a bug in pgdyno: please report it with these lines",
        ) from error


def file_name(experiment_id: str) -> str:
    """Return a name for an experiment's files, without extension."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in experiment_id).strip(".")
    return f"pgdyno-{plain}"
