"""A test that cannot fail is none: each asserts something, itself or by what it calls."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.house.source import ROOT, parsed_files

TESTS = ROOT / "tests"
CHECKS = {"raises", "warns", "fail", "does_not_raise"}
"""What fails a test, or says that an exception does."""
USE_CASES = tuple(
    f"pgdyno.{subject}"
    for subject in (
        *("plan", "apply", "workload", "remote", "measure", "builds", "profile"),
        *("accelerate", "tune", "studies", "results"),
    )
)
MOST_PATCHES = 78  # as many as there are; each ties a test to the place of a function


def test_every_test_asserts_something() -> None:
    idle = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: it asserts nothing, so that it cannot fail; "
        "assert what it is for; if it is for raising nothing, say with does_not_raise()"
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if not asserts(node, path, frozenset())
    ]
    assert not idle, "\n".join(idle)


def test_use_cases_are_given_their_parts_rather_than_patched() -> None:
    patches = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and name_of(node.func) == "setattr" and patches_use_case(node, path)
    ]
    instead = "give the use case its part as an argument, as in builds/build.py"
    assert len(patches) <= MOST_PATCHES, "\n".join([f"more than {MOST_PATCHES}: {instead}", *patches])


def patches_use_case(call: ast.Call, path: Path) -> bool:
    """Whether a ``setattr`` of pytest's changes a name of a use case."""
    target = call.args[0]
    if isinstance(target, ast.Constant):
        return str(target.value).startswith(USE_CASES)
    root = target
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in names_of_use_cases(path)


@cache
def names_of_use_cases(path: Path) -> frozenset[str]:
    """Return the names that a test file imports from use cases."""
    return frozenset(
        alias.asname or alias.name
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(USE_CASES)
        for alias in node.names
    )


def asserts(function: ast.FunctionDef, path: Path, seen: frozenset[tuple[Path, str]]) -> bool:
    """Whether a function, or one of the tests' own that it calls or is given, can fail a test."""
    fails, named = fails_and_names(function)
    if fails:
        return True
    known = functions(path)
    return any(
        asserts(*known[name], seen | {(path, name)})
        for name in named & known.keys()
        if (path, name) not in seen
    )


@cache
def fails_and_names(function: ast.FunctionDef) -> tuple[bool, frozenset[str]]:
    """Whether a function itself can fail a test, and the names that it calls or is given as fixtures."""
    nodes = tuple(ast.walk(function))
    called = {name_of(node.func) for node in nodes if isinstance(node, ast.Call)}
    fails = bool(called & CHECKS) or any(isinstance(node, ast.Assert | ast.Raise) for node in nodes)
    return fails, frozenset(called | {argument.arg for argument in function.args.args})


def name_of(node: ast.expr) -> str:
    """Return ``fail`` of ``pytest.fail``, and a plain name as it is."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@cache
def functions(path: Path) -> dict[str, tuple[ast.FunctionDef, Path]]:
    """Return the functions of the tests that a file has or imports, with the files they are in."""
    found: dict[str, tuple[ast.FunctionDef, Path]] = {}
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            target = ROOT / f"{(node.module or '').replace('.', '/')}.py"
            theirs = functions(target) if target.is_file() else {}
            found |= {
                alias.asname or alias.name: theirs[alias.name] for alias in node.names if alias.name in theirs
            }
    found |= {node.name: (node, path) for node in nodes_of(path) if isinstance(node, ast.FunctionDef)}
    return found


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file of the tests."""
    return tuple(ast.walk(trees()[path]))


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax trees of the tests' files."""
    return parsed_files(TESTS.rglob("*.py"))
