"""Walks pgdyno's own source for the house tests: each file is parsed once, and its tree walked once."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pgdyno"
CATALOGUES = (
    "plan/levers/",
    "plan/formats/",
    "workload/bundled/",
    "measure/meters/",
    "studies/bundled/",
)
"""Folders that are found by walking: one file adds one entry."""

OUTSIDE = {"subprocess", "os", "socket", "time", "random", "shutil", "tempfile", "sqlite3", "signal"}
"""Modules of the standard library that reach outside."""
OPENING = {"open", "read_text", "read_bytes", "write_text", "write_bytes"}
"""Calls that read or write files; templates of our own are part of the program."""


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
    def is_entry(self) -> bool:
        """Whether it lies in a catalogue."""
        is_part = self.place.startswith("studies/bundled/") and self.place.count("/") > 2  # of a benchmark
        return self.place.startswith(CATALOGUES) and not is_part

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """The line and the dotted name of every import, late ones included."""
        found: list[tuple[int, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found += ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        return tuple(found)


@cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package."""
    trees = parsed_files(PACKAGE.rglob("*.py"))
    return tuple(Module(path, tree) for path, tree in trees.items())


def parsed_files(paths: Iterable[Path]) -> dict[Path, ast.Module]:
    """Parse files, and keep the collector of garbage from going over their millions of nodes."""
    gc.disable()
    try:
        return {path: ast.parse(path.read_text()) for path in sorted(paths)}
    finally:
        gc.freeze()
        gc.enable()


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
            found for _, target in module.imports if (found := named(target)) not in {None, module.name}
        )
        for module in modules()
    }


def reaching_out(module: Module) -> Iterator[str]:
    """Yield the modules and calls by which a module reaches outside."""
    yield from (name for _, name in module.imports if name.split(".")[0] in OUTSIDE)
    called = {node.func for node in module.nodes if isinstance(node, ast.Call)}
    names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called}
    yield from names & OPENING


@cache
def all_imports(name: str) -> frozenset[str]:
    """Return all modules of pgdyno that a module leads to."""
    found: set[str] = set()
    left = [name]
    while left:
        for target in imported_modules()[left.pop()] - found:
            found.add(target)
            left.append(target)
    return frozenset(found)
