"""Walks pgdyno's own source for the house tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pgdyno"


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
    def package(self) -> str:
        """The top-level package: ``stats`` for stats/nested.py, "" for the root."""
        parts = self.path.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else ""

    def imports(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the dotted name of every import, late ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def modules() -> list[Module]:
    """Return every module of the package."""
    return [Module(path, ast.parse(path.read_text())) for path in sorted(PACKAGE.rglob("*.py"))]
