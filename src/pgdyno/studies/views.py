"""Views that benchmarks bring: found by walking the bundled studies, one ``view.py`` in a folder adds one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Protocol, cast

from rich.console import RenderableType

from pgdyno.base.document import Json
from pgdyno.model.experiments.experiment import Experiment

_BUNDLED = "pgdyno.studies.bundled"


class ViewModule(Protocol):
    """The view of a benchmark: empty for experiments of other kinds."""

    NAME: str  # its key in JSON documents

    def tables(self, experiment: Experiment) -> Iterator[RenderableType]:
        """Yield the tables for a terminal."""
        ...

    def page(self, experiment: Experiment) -> Mapping[str, object]:
        """Return the values of its part of the page's template, by their names there."""
        ...

    def by_workload(self, experiment: Experiment) -> Mapping[str, object]:
        """Return the values of the template's part on each workload."""
        ...

    def document(self, experiment: Experiment) -> Json:
        """Return its part of the JSON document."""
        ...


@cache
def views() -> tuple[ViewModule, ...]:
    """Return the views of all benchmarks, in the order of their names."""
    places = importlib.import_module(_BUNDLED).__path__
    folders = sorted(one.name for one in pkgutil.iter_modules(places) if one.ispkg)
    return tuple(cast("ViewModule", importlib.import_module(f"{_BUNDLED}.{name}.view")) for name in folders)
