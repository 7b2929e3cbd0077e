"""Forms in which a plan can be written down: one file adds one format, found by walking the package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from pgdyno.formats._contract import FormatModule


def load() -> Mapping[str, FormatModule]:
    """Return every format's module by name."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    modules = (importlib.import_module(f"{__name__}.{name}") for name in names)
    return MappingProxyType({module.FORMAT.name: module for module in modules})
