"""The catalogue of workloads, found by walking the package: one file adds one workload.

A workload file has ``WORKLOAD = Workload(…)``, or ``WORKLOADS`` for one that runs on data of several sizes.
Modules with a leading ``_`` have shared code.
The contract tests in ``tests/contract/test_workloads.py`` run over every entry.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from pgdyno.model.experiments.workload import Workload


def load() -> Mapping[str, Workload]:
    """Return every bundled workload by name."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    modules = (importlib.import_module(f"{__name__}.{name}") for name in names)
    found = (getattr(module, "WORKLOADS", None) or (module.WORKLOAD,) for module in modules)
    return MappingProxyType({workload.name: workload for several in found for workload in several})
