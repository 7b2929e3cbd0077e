"""Files and functions stay small enough to be held in one head."""

from __future__ import annotations

import ast

from tests.house.source import ROOT, modules

FILE_LINES = 400
FUNCTION_LINES = 60


def test_files_are_short() -> None:
    long = [
        f"{module.place} has {count} lines (limit {FILE_LINES}): look for two things in one"
        for module in modules()
        if (count := len(module.path.read_text().splitlines())) > FILE_LINES
    ]
    assert not long, "\n".join(long)


def test_functions_are_short() -> None:
    long = [
        f"{module.place}:{node.lineno} {node.name} has {count} lines (limit {FUNCTION_LINES}): split it"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef)
        if (count := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def test_no_module_is_named_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base"}
    named = [f"{m.place}: name it after the thing it holds" for m in modules() if m.path.stem in vague]
    assert not named, "\n".join(named)


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        f"{module.place} has no docstring" for module in modules() if not ast.get_docstring(module.tree)
    ]
    assert not silent, "\n".join(silent)


def test_the_licence_is_apache() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
