"""Habits that keep pgdyno safe, checked in the source."""

from __future__ import annotations

import ast

from tests.house.source import modules


def test_no_subprocess_goes_through_a_shell() -> None:
    wrong = [
        f"{module.place}:{node.lineno} passes shell=True: pass a list of arguments"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "shell"
    ]
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_never_caught_blindly() -> None:
    wrong = [
        f"{module.place}:{node.lineno} catches everything: name the exception"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
        if node.type is None
        or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
    ]
    assert not wrong, "\n".join(wrong)


def test_assertions_are_not_used_to_check_input() -> None:
    wrong = [
        f"{module.place}:{node.lineno} asserts without saying why it must hold"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assert)
        if "# noqa: S101 — " not in module.path.read_text().splitlines()[node.lineno - 1]
    ]
    assert not wrong, "\n".join(wrong)
