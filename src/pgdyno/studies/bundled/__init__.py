"""Bundled studies, found by walking the package: one file adds one study.

A study file has ``STUDY``, a ``BundledStudy``: what it is called, what it measures, which options it takes,
and the function that makes it. Command line, refusals and the command that repeats it follow from that.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from pgdyno.model.experiments.bundled_study import BundledStudy


def load() -> Mapping[str, BundledStudy]:
    """Return every bundled study by name: the file's name with hyphens."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return MappingProxyType(
        {
            name.replace("_", "-"): cast("BundledStudy", importlib.import_module(f"{__name__}.{name}").STUDY)
            for name in sorted(names)
        }
    )
