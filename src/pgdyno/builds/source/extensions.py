"""The value of ``--extensions``: contrib modules, and source trees of other extensions.

A tree must build with PGXS: its Makefile finds PostgreSQL by pg_config. Always a copy is built.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.builds.source.source import NOT_SOURCE, checksum
from pgdyno.host.files.source_tree import OpenTree, SourceTree

ALL = "contrib"  # every contrib module that the configuration can build
_MODULE = re.compile(r"[a-z][a-z0-9_-]*")
_TREE = re.compile(r"[\w.+-]+")  # a directory name that make does not split
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_COMPILED = frozenset({".o", ".so", ".a", ".bc", ".gcda", ".gcno"})
_SHOWN = 3
_EXAMPLES = "--extensions pg_trgm, --extensions contrib, or --extensions ./pgvector"


@dataclass(frozen=True)
class ExtensionTree:
    """The source tree of an extension. ``name``: its directory's name."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True)
class Extensions:
    """Additional extensions of a build. ``modules``: contrib modules, or ``ALL``."""

    modules: tuple[str, ...] = ()
    trees: tuple[ExtensionTree, ...] = ()

    @property
    def identity(self) -> list[list[str]]:
        """The extensions' part of a build's identity: names, and checksums of trees."""
        return [[name] for name in self.modules] + [[tree.name, tree.sha256] for tree in self.trees]


def parse_extensions(asked: Sequence[str], open_tree: OpenTree) -> Extensions:
    """Return the named extensions, each once.

    The name of a directory contains a slash, or begins with a dot or tilde.
    Raises: UsageError for a name of neither; RefusedError for a tree that was compiled in place.
    """
    modules: dict[str, None] = {}
    trees: dict[str, ExtensionTree] = {}
    for text in asked:
        if "/" not in text and not text.startswith((".", "~")):
            modules[_module(text)] = None
            continue
        tree = _tree(text, open_tree)
        if trees.setdefault(tree.name, tree).path != tree.path:
            raise UsageError(
                f'--extensions "{text}" has the same name as another extension',
                detail=f"{trees[tree.name].path} is also named {tree.name}",
                hint="an extension is named after its directory: rename one of them",
            )
    return Extensions(tuple(modules), tuple(trees.values()))


def require_modules(names: Sequence[str], source: Path, version: str) -> None:
    """Raise UsageError unless a source tree has all these modules."""
    there = sorted(makefile.parent.name for makefile in (source / "contrib").glob("*/Makefile"))
    wrong = [name for name in names if name != ALL and name not in there]
    if wrong:
        raise UsageError(
            f'PostgreSQL {version} has no contrib module "{wrong[0]}"',
            detail=f"it has {', '.join(there)}",
            hint=f"to name a directory, use a slash: --extensions ./{wrong[0]}",
        )


def _module(text: str) -> str:
    if not _MODULE.fullmatch(text):
        raise UsageError(f'--extensions "{text}" is neither a contrib module nor a directory', hint=_EXAMPLES)
    return text


def _tree(text: str, open_tree: OpenTree) -> ExtensionTree:
    path = Path(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100 — open_tree handles links
    if not path.is_dir():
        raise UsageError(
            f'--extensions "{text}" is not a directory', detail=f"{path} does not exist", hint=_EXAMPLES
        )
    with open_tree(path) as tree:
        _require_buildable(tree, path, text)
        return ExtensionTree(path.name, path, checksum(tree.files(NOT_SOURCE)))


def _require_buildable(tree: SourceTree, path: Path, text: str) -> None:
    if not any(name in tree.names() for name in _MAKEFILES):
        raise UsageError(
            f'--extensions "{text}" contains no Makefile',
            detail="an extension is compiled by the Makefile in its directory, which must include PGXS",
            hint=_EXAMPLES,
        )
    if not _TREE.fullmatch(path.name):
        raise UsageError(
            f'--extensions "{text}": make would split the name "{path.name}"',
            hint="rename the directory, with only letters, digits, and _ . + -",
        )
    names = (file.name for file in tree.files(NOT_SOURCE))
    made = [name for name in names if PurePath(name).suffix in _COMPILED]
    if made:
        raise RefusedError(
            f'--extensions "{text}" was compiled in place',
            detail=f"found {', '.join(made[:_SHOWN])}: objects of another build would end up in this one",
            hint="run make clean there, or name a clean checkout: git worktree add ../clean",
        )
