"""Walks pgdyno's own source for the house tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pgdyno"
CATALOGUES = {"levers", "workloads", "meters", "studies", "formats"}


@dataclass(frozen=True)
class Module:
    """One source file."""

    path: Path
    tree: ast.Module

    @property
    def place(self) -> str:
        """The path within the package, for messages."""
        return str(self.path.relative_to(PACKAGE))

    @property
    def name(self) -> str:
        """The dotted name: ``pgdyno.stats.nested``, ``pgdyno.stats`` for the package itself."""
        parts = self.path.relative_to(PACKAGE).with_suffix("").parts
        return ".".join(("pgdyno", *(part for part in parts if part != "__init__")))

    @property
    def package(self) -> str:
        """The top-level package: ``stats`` for stats/nested.py, "" for the root."""
        parts = self.path.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else ""

    @property
    def room(self) -> str:
        """The folder within the top-level package: ``runs`` for journal/runs/undo.py, "" beside the rooms."""
        parts = self.path.relative_to(PACKAGE).parts
        return parts[1] if len(parts) > 2 else ""

    def imports(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the dotted name of every import, late ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package."""
    return tuple(Module(path, ast.parse(path.read_text())) for path in sorted(PACKAGE.rglob("*.py")))


@cache
def imported_modules() -> dict[str, frozenset[str]]:
    """Return which modules of pgdyno each module imports, those for annotations alone included."""
    known = {module.name for module in modules()}

    def named(target: str) -> str | None:
        if target in known:
            return target
        owner = target.rpartition(".")[0]
        return owner if owner in known else None

    return {
        module.name: frozenset(
            found for _, target in module.imports() if (found := named(target)) not in {None, module.name}
        )
        for module in modules()
    }
