"""Output formats of a plan: each module of this package is one format."""

from __future__ import annotations

import importlib
import pkgutil

from pgdyno.plan.formats._contract import FormatModule


def names() -> tuple[str, ...]:
    """Return the formats' names, which are their modules' names, without importing them."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(name: str) -> FormatModule:
    """Import one format. Raises: ModuleNotFoundError for a name that is not in ``names``."""
    module: FormatModule = importlib.import_module(f"{__name__}.{name}")
    return module
