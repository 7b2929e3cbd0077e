"""Bundled studies, found by walking the package: one file, or one folder, adds one study.

A study file defines ``STUDY``, a ``BundledStudy``: title, workloads, options, and the function that creates
the study. The command line, its checks and the command that repeats an experiment derive from it.
A folder defines it in ``study.py``, next to its own measuring code and views.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from pgdyno.measure.bundled_study import BundledStudy


def load() -> Mapping[str, BundledStudy]:
    """Return every bundled study by name: the name of its file or folder, with hyphens."""
    found = (module for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    places = {one.name: f"{__name__}.{one.name}{'.study' if one.ispkg else ''}" for one in found}
    return MappingProxyType(
        {
            name.replace("_", "-"): cast("BundledStudy", importlib.import_module(places[name]).STUDY)
            for name in sorted(places)
        }
    )
