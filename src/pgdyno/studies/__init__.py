"""Bundled experiments, found by walking the package: one file adds one study.

A study file has ``TITLE``, what ``pgdyno run --list`` prints, ``NEEDS_PLAN``, whether it uses the
configurations that are made for this host, and ``study(context) -> Study``. A study that brings its own
workloads also has ``workloads(sizing)``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

from pgdyno.model.study import Study
from pgdyno.model.workload import Workload
from pgdyno.studies._contract import Sizing, StudyContext


class StudyModule(Protocol):
    """What a study file is."""

    TITLE: str
    NEEDS_PLAN: bool

    def study(self, context: StudyContext) -> Study:
        """Return the study for this host, with the workloads chosen."""
        ...


def own_workloads(module: StudyModule, sizing: Sizing) -> Mapping[str, Workload] | None:
    """Return the workloads that a study brings itself; None if it measures what it is given.

    Raises: UsageError for a size that it does not have.
    """
    make = getattr(module, "workloads", None)
    return None if make is None else cast("Mapping[str, Workload]", make(sizing))


def load() -> Mapping[str, StudyModule]:
    """Return every bundled study by name: the file's name with hyphens."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return MappingProxyType(
        {
            name.replace("_", "-"): cast("StudyModule", importlib.import_module(f"{__name__}.{name}"))
            for name in sorted(names)
        }
    )
