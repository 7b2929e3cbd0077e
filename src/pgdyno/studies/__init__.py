"""Bundled experiments, found by walking the package: one file adds one study.

A study file has ``TITLE``, what ``pgdyno run --list`` prints, ``NEEDS_PLAN``, whether it uses the
configurations that are made for this host, and ``study(context) -> Study``. A study that brings its own
workloads also has ``workloads(sizing)``, and ``settings(sizing)`` if servers' settings belong to them. One
that measures bundled workloads may have ``WORKLOADS``, their names, and ``DESIGN`` for what no option asks
for, and ``LAYERS``, which are planned for it. ``NEEDS_IO_SUPPORT`` says that it has to know what the server
can do about asynchronous I/O, ``NEEDS_PAGE_SUPPORT`` what pages its memory can be put on. ``BUDGET_S`` is how
long it measures unless told, ``TAKES_QUERY`` that it takes a query of the user's own, ``TAKES_SERVER`` that
it can be measured on somebody's running server, ``TAKES_PROTOCOL`` that one can choose how statements travel,
``LOADS`` the names among which one can choose, ``TAKES_SCALE`` that --scale is the size of its own data.
``SIZES`` are the options, without hyphens before, that say how large its own workloads are. Options that a
study does not take are refused.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.plan import Layer
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


def brings_workloads(module: StudyModule) -> bool:
    """Whether a study brings its own workloads."""
    return hasattr(module, "workloads")


def own_settings(module: StudyModule, sizing: Sizing) -> Mapping[str, str]:
    """Return the server's settings that belong to a study's own workloads. Raises: UsageError as above."""
    make = getattr(module, "settings", None)
    return {} if make is None else cast("Mapping[str, str]", make(sizing))


def usual_workloads(module: StudyModule) -> tuple[str, ...]:
    """Return the bundled workloads that a study measures unless others are asked for; it may have none."""
    return cast("tuple[str, ...]", getattr(module, "WORKLOADS", ()))


def usual_design(module: StudyModule) -> Design:
    """Return the design that a study has unless another is asked for."""
    return cast("Design", getattr(module, "DESIGN", Design()))


def usual_layers(module: StudyModule) -> tuple[Layer, ...]:
    """Return the layers that are planned for a study."""
    return cast("tuple[Layer, ...]", getattr(module, "LAYERS", (Layer.APPLICATION,)))


def needs_io_support(module: StudyModule) -> bool:
    """Whether a study has to know what the server can do about asynchronous I/O."""
    return bool(getattr(module, "NEEDS_IO_SUPPORT", False))


def needs_page_support(module: StudyModule) -> bool:
    """Whether a study has to know what pages a server's memory can be put on."""
    return bool(getattr(module, "NEEDS_PAGE_SUPPORT", False))


def takes_query(module: StudyModule) -> bool:
    """Whether a study takes a query of the user's own."""
    return bool(getattr(module, "TAKES_QUERY", False))


def takes_server(module: StudyModule) -> bool:
    """Whether a study can be measured on somebody's running server."""
    return bool(getattr(module, "TAKES_SERVER", False))


def takes_protocol(module: StudyModule) -> bool:
    """Whether it can be chosen how a study's statements travel."""
    return bool(getattr(module, "TAKES_PROTOCOL", False))


def own_options(module: StudyModule) -> frozenset[str]:
    """Return the options that only some studies take, and this one does: of its size, query and protocol.

    Names are without hyphens before.
    """
    asked = {
        "query": takes_query(module),
        "writes": takes_query(module),
        "protocol": takes_protocol(module),
    }
    sizes = cast("tuple[str, ...]", getattr(module, "SIZES", ()))
    return frozenset((*sizes, *(name for name, is_taken in asked.items() if is_taken)))


def loads_of(module: StudyModule) -> tuple[str, ...]:
    """Return the names of a study's own loads among which one can choose; none where all belong to it."""
    return cast("tuple[str, ...]", getattr(module, "LOADS", ()))


def takes_scale(module: StudyModule) -> bool:
    """Whether the size of a study's own data is asked for as a scale, which may be a fraction."""
    return bool(getattr(module, "TAKES_SCALE", False))


def usual_budget_s(module: StudyModule) -> float | None:
    """Return how long a study measures unless told; None: its design says how many rounds."""
    return cast("float | None", getattr(module, "BUDGET_S", None))


def load() -> Mapping[str, StudyModule]:
    """Return every bundled study by name: the file's name with hyphens."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return MappingProxyType(
        {
            name.replace("_", "-"): cast("StudyModule", importlib.import_module(f"{__name__}.{name}"))
            for name in sorted(names)
        }
    )
