"""The driver's modules import each other in one direction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.house.source import ROOT

SOURCE = ROOT / "driver" / "src"
_OWN_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*", re.DOTALL)
_COMMENT = re.compile(r"//.*")
_PATH = re.compile(r"\b(crate|super)((?:::\w+)+)(?:::\{([^;]*?)\})?", re.DOTALL)


def sources() -> dict[str, str]:
    """Return the code of each module of the library by its path, tests and comments left out."""
    found = {}
    for path in SOURCE.rglob("*.rs"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if not {"tests", "main", "cli", "text", "recorded"} & set(parts):
            code = _COMMENT.sub("", _OWN_TESTS.sub("", path.read_text(encoding="utf-8")))
            found["::".join(part for part in parts if part != "mod")] = code
    return found


def uses(module: str, code: str, known: Mapping[str, str]) -> Iterator[str]:
    """Yield the modules that a module names, in ``use`` or in place."""
    for base, path, braces in _PATH.findall(code):
        parts = [*([] if base == "crate" else module.split("::")[:-1]), *path.split("::")[1:]]
        ends = [[], *([end] for end in re.findall(r"\w+", braces))]
        for end in ends:
            whole = [*parts, *end]
            names = ("::".join(whole[:count]) for count in range(len(whole), 0, -1))
            target = next((name for name in names if name in known), module)
            if target != module:
                yield target


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return modules that name each other in a circle, the first one found; empty if there is none."""
    done: set[str] = set()

    def search(name: str, above: tuple[str, ...]) -> list[str]:
        if name in above:
            return [*above[above.index(name) :], name]
        if name not in done:
            for target in sorted(graph[name]):
                if found := search(target, (*above, name)):
                    return found
            done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := search(name, ()))), [])


def test_modules_of_the_driver_do_not_import_each_other_in_circles() -> None:
    code = sources()
    graph = {name: set(uses(name, text, code)) for name, text in code.items()}
    assert graph["run"] >= {"control", "commands", "coordinator"}, "imports are no longer found"
    found = circle(graph)
    assert not found, f"{' → '.join(found)}: move what both need into a module below both"


def test_a_circle_is_found() -> None:
    code = {"a": "use crate::b::{self, C};", "b": "use crate::d;", "d": "fn f() { super::a::f() }"}
    graph = {name: set(uses(name, text, code)) for name, text in code.items()}
    assert circle(graph) == ["a", "b", "d", "a"]
