"""Add extensions to a build: contrib modules with it, other source trees by PGXS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pgdyno.builds.directory import BuildDirectory
from pgdyno.builds.fetch import changed
from pgdyno.builds.run.making import Making, RunAs
from pgdyno.builds.source.extensions import ALL, ExtensionTree
from pgdyno.builds.source.source import copy_tree
from pgdyno.host.files.source_tree import opened_tree


def chosen_modules(making: Making, asked: Sequence[str], always: Sequence[str]) -> tuple[str, ...]:
    """Return the contrib modules to build, each once, with their dependencies.

    Those that every build has are the last. Raises: InstallationError if make cannot tell.
    """
    named = [name for one in asked for name in _of(making, one)]
    return tuple(name for name in dict.fromkeys(named) if name not in always) + tuple(always)


def copy_trees(trees: Sequence[ExtensionTree], at: BuildDirectory) -> None:
    """Copy trees to where they are built. Raises: InstallationError for one that has changed meanwhile."""
    if not trees:
        return
    at.empty(at.extensions.name)
    for tree in trees:
        with opened_tree(tree.path) as found:
            digest = copy_tree(found, at.extensions / tree.name)
        if digest != tree.sha256:
            raise changed(str(tree.path))
    at.give(at.extensions)


def install_trees(
    trees: Sequence[ExtensionTree], at: BuildDirectory, variables: Mapping[str, str], run_as: RunAs
) -> None:
    """Build extension trees with the server's flags, and install them into its prefix.

    They are not trained: no workload uses them. Raises: InstallationError with make's last words.
    """
    asking = {**variables, "PG_CONFIG": str(at.staged("built") / "bin/pg_config")}
    for tree in trees:
        making = Making(at.extensions / tree.name, at.log, f"the extension {tree.name}", run_as)
        making.clean(asking)  # of what an interrupted try has left
        making.build(["."], asking, lambda _: None)
        making.install_in_place(asking)


def _of(making: Making, asked: str) -> Iterator[str]:
    """Yield the modules that a name stands for, after those that its tests need."""
    for name in making.value("contrib", "$(SUBDIRS)", {}).split() if asked == ALL else [asked]:
        needed = making.value(f"contrib/{name}", "$(EXTRA_INSTALL)", {}).split()
        yield from (one.removeprefix("contrib/") for one in needed if one.startswith("contrib/"))
        yield name
