"""Output formats of a plan: one file adds one format, found by walking the package."""

from __future__ import annotations

import importlib
import pkgutil

from pgdyno.plan.formats._contract import FormatModule


def names() -> tuple[str, ...]:
    """Return every format's name, which is its file's; none of them is imported for that."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(name: str) -> FormatModule:
    """Import one format. Raises: ModuleNotFoundError for a name that ``names`` does not return."""
    module: FormatModule = importlib.import_module(f"{__name__}.{name}")
    return module
