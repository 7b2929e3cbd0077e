"""Print the size of the house, as it stands in docs/house.md.

python -m chores.house
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping

from tests.house.source import ROOT, Module, imported_modules, modules

COMMANDS = ("compare", "apply", "profile", "accelerate", "run")
_VIEWS = ("report/", "studies/grids/")
_VIEW_FILES = (
    *("_text.py", "_page.py", "_table.py", "_tables.py", "_words.py", "view.py", "results/page.py"),
    "tpch/tables.py",
)
_NO_VIEWS = (  # tables of databases, their pages, the text segment of a program
    *("postgres/", "store/", "load/", "builds/", "measure/meters/", "studies/bundled/_client_tables.py"),
)


def reach(module: str, imports: Mapping[str, frozenset[str]]) -> tuple[int, tuple[str, ...]]:
    """Return how many modules a module leads to, itself included, and the longest chain to one of them."""
    chains: dict[str, tuple[str, ...]] = {}

    def chain(name: str) -> tuple[str, ...]:
        if name not in chains:
            longest = max((chain(one) for one in sorted(imports[name])), key=len, default=())
            chains[name] = (name, *longest)
        return chains[name]

    longest = chain(module)
    return len(chains), longest


def lines_of(some: Iterator[Module] | tuple[Module, ...]) -> int:
    """Return the number of lines of modules."""
    return sum(len(one.path.read_text().splitlines()) for one in some)


def is_view(module: Module) -> bool:
    """Whether a module makes pages or text of results."""
    if module.place.startswith(_NO_VIEWS):
        return False
    return module.place.startswith(_VIEWS) or "/view/" in module.place or module.place.endswith(_VIEW_FILES)


def mirrored() -> tuple[int, int]:
    """Return how many modules have a test at the mirrored path, and how many could; entries are left out."""
    could = [one for one in modules() if one.path.stem not in {"__init__", "__main__"} and not one.is_entry]
    tests = [ROOT / "tests" / kind for kind in ("unit", "programs", "integration")]

    def is_mirrored(module: Module) -> bool:
        name = f"test_{module.path.stem.lstrip('_')}.py"
        return any((folder / module.place).with_name(name).is_file() for folder in tests)

    return sum(map(is_mirrored, could)), len(could)


def tracked_bytes() -> int:
    """Return the size of all files under version control."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = (ROOT / name for name in listed.stdout.split("\0") if name)
    return sum(path.lstat().st_size for path in files)


def rows() -> Iterator[tuple[str, str]]:
    """Yield each number with its name."""
    yield "files of Python in src; lines", f"{len(modules()):,}; {lines_of(modules()):,}"
    for command in COMMANDS:
        files, chain = reach(f"pgdyno.cli.{command}", imported_modules())
        yield f"files that `{command}` can reach; levels of imports", f"{files}; {len(chain)}"
    yield "report/ and all views, lines", f"{lines_of(one for one in modules() if is_view(one)):,}"
    tested, could = mirrored()
    yield "modules with a test at the mirrored path, without entries of catalogues", f"{tested / could:.0%}"
    yield "tracked files, apparent size", f"{tracked_bytes() / 1e6:.1f} MB"


def main() -> None:
    """Print the table."""
    for name, value in rows():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
