"""The catalogue of levers, collected from the modules of this package.

Every module in a layer's package is a lever or a table of checks, ``CHECKS``; names of shared modules begin
with ``_``. ``_contract.py`` defines levers: start reading there. ``plan/engine/`` has the facts available to
levers, the proofs, and the planner that runs levers. The contract tests in ``tests/contract/test_levers.py``
cover every entry.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from types import MappingProxyType

from pgdyno.model.plans.plan import Layer
from pgdyno.plan.levers._contract import LeverModule, levers_of


@cache
def load() -> Mapping[str, LeverModule]:
    """Return every lever by name, in planning order.

    Raises: graphlib.CycleError for a cycle in ``order_after``.
    """
    modules = (importlib.import_module(name) for name in _module_names())
    found = {lever.LEVER.name: lever for module in modules for lever in levers_of(module)}
    return MappingProxyType({name: found[name] for name in _in_order(found)})


def kernel_files() -> tuple[str, ...]:
    """Return the paths and patterns of all kernel files that levers read or write."""
    wanted = (path for module in load().values() for path in (*module.LEVER.files, *module.LEVER.reads))
    return tuple(dict.fromkeys(wanted))


def _module_names() -> list[str]:
    packages = (f"{__name__}.{layer}" for layer in Layer)
    found = (package for package in packages if importlib.util.find_spec(package) is not None)
    paths = ((package, importlib.import_module(package).__path__) for package in found)
    return [
        f"{package}.{module.name}"
        for package, path in paths
        for module in pkgutil.iter_modules(path)
        if not module.name.startswith("_")
    ]


def _in_order(levers: Mapping[str, LeverModule]) -> list[str]:
    """Sort by dependency, then by layer from the outermost inwards, then by name."""
    layers = list(Layer)
    early = {name for name, module in levers.items() if not module.LEVER.is_named_only}
    graph = TopologicalSorter(
        {name: set(one.LEVER.order_after) if name in early else early for name, one in levers.items()}
    )
    graph.prepare()
    ordered: list[str] = []
    while graph.is_active():
        ready = sorted(graph.get_ready(), key=lambda name: (layers.index(levers[name].LEVER.layer), name))
        ordered += ready
        graph.done(*ready)
    return ordered
