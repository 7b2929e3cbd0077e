"""Subjects stand in one strict order: each imports those before it alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest
from chores.house import reach
from tests.house.source import OUTSIDE, Module, all_imports, imported_modules, modules

SUBJECTS = (
    "base",
    "host",
    "postgres",
    "model",
    "report",
    "stats",
    "store",
    "load",
    "plan",
    "apply",
    "workload",
    "remote",
    "measure",
    "builds",
    "profile",
    "accelerate",
    "tune",
    "studies",
    "results",
    "cli",
)
STANDARD_LIBRARY_ONLY = {"base", "model"}
PURE = (
    "model/",
    "report/",
    "stats/",
    "store/privacy/",
    "plan/degrees/",
    "plan/engine/",
    "plan/formats/",
    "plan/levers/",
    "plan/peers/",
    "plan/view/",
    "workload/bundled/",
    "workload/capture/",
    "workload/subset/",
    "workload/synthesis/",
    "workload/view.py",
    "measure/blocks/",
    "measure/decisions/",
    "measure/design/",
    "measure/meters/",
    "measure/records/",
    "measure/verdicts/",
    "measure/view/",
    "profile/",
    "accelerate/view.py",
    "tune/search/",
    "tune/view.py",
    "studies/bundled/",
    "studies/grids/",
)
"""Folders that get values handed in: they start, open and ask nothing."""
REACHING = re.compile(r"studies/bundled/\w+/passes\.py|profile/reading/\w+\.py")
"""Files that measure, beside those that only compute."""

REACH = {
    "compare": (303, 13),
    "apply": (144, 13),
    "profile": (243, 15),
    "accelerate": (417, 18),
    "run": (334, 15),
}
"""What a command can reach: files, and the longest chain of imports. These only fall."""


def test_subjects_import_those_before_them_alone() -> None:
    strange = {module.package for module in modules()} - {"", *SUBJECTS}
    assert not strange, f"{strange} has no place in the order: add it to SUBJECTS, after what it needs"
    wrong = [
        f"{module.place} imports {target}: {target.split('.')[1]}/ comes after {module.package}/; move what "
        "both need down, or hand it in"
        for module in modules()
        if module.package
        for target in imported_modules()[module.name]
        if target.count(".") and place_of(target) > SUBJECTS.index(module.package)
    ]
    assert not wrong, "\n".join(wrong)


def place_of(module: str) -> int:
    """Return the place of a module's subject in the order."""
    return SUBJECTS.index(module.split(".")[1])


def test_nouns_use_the_standard_library_only() -> None:
    wrong = [
        f"{module.place}:{line} imports {name}: {module.package}/ is standard library only"
        for module in modules()
        if module.package in STANDARD_LIBRARY_ONLY
        for line, name in module.imports
        if name.split(".")[0] not in sys.stdlib_module_names | {"pgdyno"}
    ]
    assert not wrong, "\n".join(wrong)


def test_nouns_of_the_host_and_of_servers_do_not_reach_outside() -> None:
    """They lie beside the rooms that read them: ``host/cpu_list.py``, ``host/machine/cpu.py``."""
    nouns = [one for one in modules() if one.package in {"host", "postgres"} and one.place.count("/") == 1]
    assert not list(reaching_outside(nouns))
    names = {one.name for one in nouns}
    wrong = [
        f"{one.place}:{line} imports {name}: nouns import nouns, and the standard library only"
        for one in nouns
        for line, name in one.imports
        if name.split(".")[0] not in sys.stdlib_module_names
        and not name.startswith("pgdyno.base.")
        and not {name, name.rpartition(".")[0]} & names
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", PURE)
def test_pure_folders_do_not_reach_outside(folder: str) -> None:
    inside = [one for one in modules() if one.place.startswith(folder) and not REACHING.fullmatch(one.place)]
    assert inside, f"{folder} is not there"
    assert not list(reaching_outside(inside))


def reaching_outside(inside: Iterable[Module]) -> Iterator[str]:
    """Yield the imports of modules that reach outside, themselves or by what they import."""
    outside = {one.name: {name.split(".")[0] for _, name in one.imports} & OUTSIDE for one in modules()}
    reaching = {name for name, found in outside.items() if found}
    for module in inside:
        own = outside[module.name]
        found = {name.split(".", 1)[1] for name in all_imports(module.name) & reaching}
        if own | found:
            yield f"{module.place} imports {', '.join(sorted(own | found))}: get its values handed in"


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


def test_help_loads_no_heavy_library() -> None:
    """A module that a command imports at its top may import one: only a run shows all."""
    heavy = ("numpy", "scipy", "pydantic", "psycopg", "jinja2", "rich", "sqlglot")
    program = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from pgdyno.cli.main import COMMANDS, cli\n"
        f"heavy, before = {heavy!r}, set()\n"
        "for words in (['--help'], *([name, '--help'] for name in COMMANDS)):\n"
        "    assert CliRunner().invoke(cli, words).exit_code == 0, words\n"
        "    for name in sorted({one for one in heavy if one in sys.modules} - before):\n"
        "        print(f'pgdyno {\" \".join(words)} loads {name}: import it inside a function')\n"
        "        before.add(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def _top_level_import(node: object) -> str:
    if isinstance(node, ast.Import):
        return node.names[0].name.split(".")[0]
    if isinstance(node, ast.ImportFrom) and node.module:
        return node.module.split(".")[0]
    return ""


@pytest.mark.parametrize("command", REACH)
def test_a_command_reaches_few_files_on_few_levels(command: str) -> None:
    """Imports in functions and those for annotations alone count: a reader follows them all the same."""
    files, chain = reach(f"pgdyno.cli.{command}", imported_modules())
    most_files, most_levels = REACH[command]
    drawn = " → ".join(name.removeprefix("pgdyno.") for name in chain)
    advice = "hand in what one command alone needs; merge a module that only passes on"
    assert files <= most_files, f"{command} reaches {files} files (limit {most_files}): {advice}"
    assert len(chain) <= most_levels, f"{drawn}: {len(chain)} levels (limit {most_levels}): {advice}"


def test_a_reach_goes_over_every_level() -> None:
    imports = {
        "top": frozenset({"bottom", "upper"}),
        "upper": frozenset({"lower", "bottom"}),
        "lower": frozenset({"bottom"}),
        "bottom": frozenset[str](),
        "beside": frozenset({"bottom"}),
    }
    assert reach("top", imports) == (4, ("top", "upper", "lower", "bottom"))
