"""What the source says of itself holds: "Pure", public names, what is still to be done."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.house.source import PACKAGE, ROOT, Module, all_imports, modules, reaching_out

CALLED_BY_OTHERS = {
    "list_commands": "click calls it",
    "format_options": "click calls it",
    "get_command": "click calls it",
    "import_": "a command: click calls it",
    "flatten_mapping": "ruamel.yaml calls it",
    "FormatModule": "what modules of plan/formats/ look like, for mypy",
}
"""Public names that nothing in the source uses, and who does."""
OF_OTHERS = {"conf_perf.py", "configurator.py"}
"""Files of another project that are named."""


def test_what_calls_itself_pure_imports_nothing_that_reaches_outside() -> None:
    impure = {module.name for module in modules() if set(reaching_out(module))}
    wrong = [
        f'{module.place} says "Pure" and imports {", ".join(sorted(found))}'
        for module in modules()
        if re.search(r"\bPure\b", ast.get_docstring(module.tree) or "")
        if (
            found := {name.split(".", 1)[1] for name in all_imports(module.name) & impure}
            | set(reaching_out(module))
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_no_public_name_is_for_tests_alone() -> None:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.j2"), *(ROOT / "bench").glob("*.py")]
    text = "\n".join(path.read_text() for path in files)
    uses = Counter(re.findall(r"\w+", text))
    idle = [
        f"{module.place} {name}: nothing in the source uses it; use it or remove it"
        for module in modules()
        if not module.is_entry
        for name in _public_names(module)
        if uses[name] == 1 and name not in CALLED_BY_OTHERS
    ]
    assert not idle, "\n".join(idle)


def _public_names(module: Module) -> Iterator[str]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from _names_in(node)
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name) and one.id[0] != "_")


def _names_in(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
    names = [node.name, *methods] if isinstance(node, ast.ClassDef) else [node.name]
    yield from (name for name in names if not name.startswith("_"))


def test_what_is_still_to_be_done_names_its_issue() -> None:
    files = [
        *PACKAGE.rglob("*.py"),
        *(ROOT / "driver/src").rglob("*.rs"),
        *(ROOT / "extension").rglob("*.[ch]"),
    ]
    nameless = [
        f"{path.relative_to(ROOT)}:{number}: write TODO(#issue), or do it"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if re.search(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", line)
    ]
    assert not nameless, "\n".join(nameless)


def test_files_that_are_named_exist() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md")]
    texts = {path: path.read_text() for path in documents}
    texts |= {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    missing = [
        f"{path.relative_to(ROOT)} names {name}, which is not there"
        for path, text in texts.items()
        for name in re.findall(r"`([a-z_]+/[a-z_/]+\.(?:py|md|toml))`", text)
        if not any((place / name).exists() for place in (ROOT, PACKAGE, path.parent))
    ]
    known = {
        path.name for folder in ("src", "tests", "bench", "chores") for path in (ROOT / folder).rglob("*.py")
    }
    missing += [
        f"{path.relative_to(ROOT)} names {name}, which is not there"
        for path, text in texts.items()
        for name in re.findall(r"(?<![\w/.])\w+\.py\b", text)
        if name not in known | OF_OTHERS
    ]
    assert not missing, "\n".join(missing)
