"""The catalogue of samplers, found by walking the package: one file adds one sampler."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import cast

from pgdyno.tune.search.samplers._contract import SamplerModule

USUAL = "guided"


def load() -> Mapping[str, SamplerModule]:
    """Return every sampler's module by name."""
    names = [one.name for one in pkgutil.iter_modules(__path__) if not one.name.startswith("_")]
    found = (cast("SamplerModule", importlib.import_module(f"{__name__}.{name}")) for name in names)
    return {module.NAME: module for module in found}
