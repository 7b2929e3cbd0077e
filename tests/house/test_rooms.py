"""No circles; a name means one thing in a subject; the map names files that exist."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from tests.house.source import PACKAGE, ROOT, imported_modules, modules
from tests.house.test_size import FILE_LINES

CLASSES_OF_SEVERAL_PACKAGES = {
    "Arm": "a server that is measured, and its bar in a figure",
    "Backend": "a process of a connection, as the host and as the server see it",
    "Column": "of a database's table, and of a report's",
    "Difference": "between two things of any kind: two machines, a build and its source",
    "Entry": "of a list: of a file, of a catalogue, of a card",
    "Memory": "of a host, and what servers share of it",
    "Need": "what a lever, or a build, cannot do without",
    "Outcome": "of a workload, and of a change",
    "Place": "of a line in a format, and of a block in the store",
    "Statement": "of a configuration format, and of a sentence in a report",
    "Step": "of a workload, and of a waterfall",
    "Table": "of a database, and of a report",
    "Target": "of a format, of a load, of a change",
    "Tree": "of files: the host's, a source's",
    "Trial": "of a way to stay awake, and of an arm",
    "Turns": "of arms: how the host follows them, and who opens them",
}
"""Public classes whose name two packages use, with what they have in common."""


def test_no_imports_go_in_circles() -> None:
    try:
        TopologicalSorter(imported_modules()).prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise AssertionError(
            f"{circle}: move what both need below them, or pass it in; TYPE_CHECKING only hides a circle"
        ) from error


OF_A_BENCHMARK = {"study", "passes", "view"}
"""Files that every benchmark's folder has."""
SHORT_LINES = 100
APART = {
    "postgres/process/enter_group.py": "a program that is run by its path",
    "load/pgbench.py": "one file a generator",
    "workload/capture/logs/csv_entries.py": "one file a format of logs",
    "workload/capture/logs/json_entries.py": "one file a format of logs",
    "workload/capture/logs/stderr_entries.py": "one file a format of logs",
}
"""Short files that stay by themselves; so do commands, entries of catalogues, and methods in stats/."""


def test_a_short_file_that_only_its_neighbour_imports_joins_it() -> None:
    lines = {module.name: len(module.path.read_text().splitlines()) for module in modules()}
    importers: dict[str, list[str]] = {module.name: [] for module in modules()}
    for name, targets in imported_modules().items():
        for target in targets:
            importers[target].append(name)
    idle = dict(APART)
    wrong = []
    for module in modules():
        if module.is_entry or module.package in {"cli", "stats"} or module.path.stem == "__init__":
            continue
        match importers[module.name]:
            case [one] if one.rpartition(".")[0] == module.name.rpartition(".")[0]:
                is_short = lines[module.name] < SHORT_LINES
                if not is_short or lines[module.name] + lines[one] > FILE_LINES:
                    continue
                if not idle.pop(module.place, None):
                    wrong.append(f"{module.place} joins {one}, its only importer")
    assert not wrong, "\n".join(wrong)
    assert not idle, f"these are not short, or not imported once: {idle}"


def test_a_file_name_means_one_thing_in_a_subject() -> None:
    places = defaultdict(list)
    for module in modules():
        is_named = module.place.startswith("studies/bundled/") and module.path.stem in OF_A_BENCHMARK
        if not (module.is_entry or is_named or module.path.stem.startswith("_")):
            places[module.package, module.path.stem].append(module.place)
    twice = [
        f"{', '.join(found)}: name one of them more narrowly" for found in places.values() if len(found) > 1
    ]
    assert not twice, "\n".join(twice)


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for package, name, place in public_classes():
        places[name].append((package, place))
    wrong = []
    for name, found in places.items():
        packages = [package for package, _ in found]
        shared = name in CLASSES_OF_SEVERAL_PACKAGES and len(set(packages)) == len(packages)
        if len(found) > 1 and not shared:
            wrong.append(f"class {name} in {', '.join(place for _, place in found)}: rename one")
    idle = [
        f"{name} is listed, and is one class" for name in CLASSES_OF_SEVERAL_PACKAGES if len(places[name]) < 2
    ]
    assert not wrong + idle, "\n".join(wrong + idle)


def public_classes() -> Iterator[tuple[str, str, str]]:
    """Yield package, name and place of every public class."""
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield module.package, node.name, module.place


def test_the_map_names_files_that_exist() -> None:
    missing = [place for place in named_on_the_map() if not (PACKAGE / place).exists()]
    assert not missing, f"ARCHITECTURE.md names these, which do not exist: {', '.join(missing)}"


def named_on_the_map() -> Iterator[str]:
    """Yield every folder and file that a line of the map in ARCHITECTURE.md names, without the remarks."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for line in re.findall(r"^- \*\*(`\w+/`.*?)(?=^- |^$)", page, re.MULTILINE | re.DOTALL):
        subject, *rest = re.split(r"`([\w/]+/)`", re.sub(r"\([^()]*\)|\*", "", line))[1:]
        yield subject
        files, *folders = rest
        yield from (f"{subject}{name}.py" for name in re.findall(r"\w+", files))
        for folder, names in zip(folders[::2], folders[1::2], strict=True):
            yield f"{subject}{folder}"
            yield from (f"{subject}{folder}{name}.py" for name in re.findall(r"\w+", names))
