"""Views of benchmarks, found by walking the bundled studies: a folder's ``view.py`` adds one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Protocol, cast

from rich.console import RenderableType

from pgdyno.base.facts import Json
from pgdyno.model.experiments.experiment import Experiment

_BUNDLED = "pgdyno.studies.bundled"


class ViewModule(Protocol):
    """The view of a benchmark. It is empty for other experiments."""

    NAME: str  # key in JSON documents

    def tables(self, experiment: Experiment) -> Iterator[RenderableType]:
        """Yield the tables for a terminal."""
        ...

    def page(self, experiment: Experiment) -> Mapping[str, object]:
        """Return the values for its part of the page template, by name."""
        ...

    def by_workload(self, experiment: Experiment) -> Mapping[str, object]:
        """Return the value for each workload's part of the page template, by workload."""
        ...

    def document(self, experiment: Experiment) -> Json:
        """Return the value of the key ``NAME`` in the JSON document."""
        ...


@cache
def views() -> tuple[ViewModule, ...]:
    """Return the views of all benchmarks, ordered by name."""
    places = importlib.import_module(_BUNDLED).__path__
    folders = sorted(one.name for one in pkgutil.iter_modules(places) if one.ispkg)
    return tuple(cast("ViewModule", importlib.import_module(f"{_BUNDLED}.{name}.view")) for name in folders)
