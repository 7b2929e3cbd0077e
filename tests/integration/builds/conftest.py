"""What all builds of the small tree share: its sources, and a workspace of the test's own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import build, put_tree, request

from pgdyno.builds.compilers._contract import Coverage
from pgdyno.builds.compilers.gcc import Gcc
from pgdyno.builds.needs import prerequisites
from pgdyno.builds.needs.prerequisites import _there


@pytest.fixture(autouse=True)
def needed_programs() -> None:
    """PostgreSQL cannot be built without them."""
    missing = [name for name in ("make", "gcc", "bison", "flex") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (apt install {' '.join(missing)})")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources of the small program."""
    return put_tree(tmp_path / "postgresql")


@pytest.fixture(autouse=True)
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of the test's own."""
    monkeypatch.setattr(prerequisites, "_there", looked_for_once)
    expected = Gcc().coverage(Path())
    monkeypatch.setattr(Gcc, "coverage", lambda _, counts: Coverage((*_argv(counts),), expected.unit, 1))
    return own_home


def looked_for_once(compiler: str, libraries: Mapping[str, str]) -> list[str]:
    """Return which libraries this host has; to look for them takes longer than most of a build."""
    return [*_looked_for(compiler, tuple(libraries.items()))]


@cache
def _looked_for(compiler: str, libraries: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(_there(compiler, dict(libraries)))


def _argv(counts: Path) -> tuple[str, ...]:
    return ("find", str(counts), "-name", "*.gcda")


@pytest.fixture
def plain(tree: Path) -> str:
    """Return the name of the plain build that others are held against."""
    return build(request(tree, "o2"), Remembered()).name
