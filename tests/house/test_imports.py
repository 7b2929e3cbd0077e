"""Imports run one way: cli → app → {catalogues, experiments, stats, search, report, adapters} → model."""

from __future__ import annotations

import sys

from tests.house.source import CATALOGUES, modules

ADAPTERS = {"host", "server", "generators", "journal", "store", "toolchain", "remote"}
PURE = {
    *("stats", "experiments", "search", "report", "privacy", "capture", "profiling", "synthesis", "subset"),
    "cells",
}

# Who may import which packages of pgdyno, besides itself and ``model``.
ALLOWED: dict[str, set[str]] = {
    "": {"cli"},
    "model": set(),
    "stats": set(),
    "search": {"stats"},
    "privacy": set(),
    "capture": set(),
    "profiling": {"stats"},
    "synthesis": set(),
    "subset": set(),
    "cells": set(),
    "experiments": {"stats"},
    "report": {"stats", "experiments", "profiling"},
    **{package: set() for package in CATALOGUES | ADAPTERS},
    "app": CATALOGUES | ADAPTERS | PURE,
    "cli": CATALOGUES | ADAPTERS | PURE | {"app"},
}
INSTEAD = {
    "model": "model knows nothing but itself: move what you need into model, or pass it in",
    "adapter": "adapters never import each other: bring them together in app/",
    "catalogue": "catalogue entries import model and their own contract: what they need arrives as a context",
    "pure": "pure packages get values from app/, they do not fetch them",
}
# Modules of the standard library that reach outside; only adapters, app and cli may use them.
OUTSIDE = {"subprocess", "os", "socket", "time", "random", "shutil", "tempfile", "sqlite3", "signal"}


def test_imports_run_one_way() -> None:
    wrong = []
    for module in modules():
        for line, name in module.imports:
            parts = name.split(".")
            if parts[0] != "pgdyno":
                continue
            target = parts[1] if len(parts) > 1 else ""
            if target in {"__version__", "model", module.package}:
                continue
            if target not in ALLOWED[module.package]:
                wrong.append(f"{module.place}:{line} imports {name}: {_advice(module.package)}")
    assert not wrong, "\n".join(wrong)


def test_model_uses_the_standard_library_only() -> None:
    wrong = [
        f"{module.place}:{line} imports {name}: model is standard library only"
        for module in modules()
        if module.package == "model"
        for line, name in module.imports
        if name.split(".")[0] not in sys.stdlib_module_names | {"pgdyno"}
    ]
    assert not wrong, "\n".join(wrong)


def test_pure_packages_and_catalogues_do_not_reach_outside() -> None:
    wrong = [
        f"{module.place}:{line} imports {name}: {INSTEAD['pure']}"
        for module in modules()
        if module.package in PURE | CATALOGUES | {"model"}
        for line, name in module.imports
        if name.split(".")[0] in OUTSIDE
    ]
    assert not wrong, "\n".join(wrong)


def test_commands_start_fast_because_heavy_libraries_are_imported_late() -> None:
    heavy = {"numpy", "scipy", "pydantic", "psycopg", "jinja2", "rich"}
    wrong = [
        f"{module.place}:{node.lineno} imports {node.module or node.names[0].name} at its top: "  # type: ignore[attr-defined]
        "import it inside the command's function"
        for module in modules()
        if module.package == "cli"
        for node in module.tree.body
        if _top_level_import(node) in heavy
    ]
    assert not wrong, "\n".join(wrong)


def _top_level_import(node: object) -> str:
    import ast

    if isinstance(node, ast.Import):
        return node.names[0].name.split(".")[0]
    if isinstance(node, ast.ImportFrom) and node.module:
        return node.module.split(".")[0]
    return ""


def _advice(package: str) -> str:
    if package == "model":
        return INSTEAD["model"]
    if package in ADAPTERS:
        return INSTEAD["adapter"]
    return INSTEAD["catalogue"] if package in CATALOGUES else INSTEAD["pure"]
