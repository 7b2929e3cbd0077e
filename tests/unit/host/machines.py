"""The fixture machines of tests/fixtures/hosts, and their facts by dotted name."""

from __future__ import annotations

import dataclasses
import errno
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.host_trees import unpack

from pgdyno.base.facts import Fact, Unknown, to_document
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree
from pgdyno.host.host import Host, Mount
from pgdyno.host.machine.inspection import inspect_tree

HOSTS = Path(__file__).resolve().parents[2] / "fixtures" / "hosts"
MACHINES = sorted(path.stem for path in HOSTS.glob("*.tree"))
_UNPACKED = TemporaryDirectory()


@dataclass(frozen=True)
class FixtureTree(Tree):
    """A tree whose forbidden paths cannot be read, not even by root, and that has no free space."""

    forbidden: tuple[str, ...] = ()

    def locate(self, path: str) -> str:
        if any(fnmatch(path, pattern) for pattern in self.forbidden):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return super().locate(path)

    def available_bytes(self, directory: str) -> Fact[int]:
        return Fact(NO_SUCH_FILE, directory)


@dataclass(frozen=True)
class Machine:
    """A machine and what must be found out about it."""

    tree: FixtureTree
    pid: int | None
    data_directory: Path | None
    expected: dict[str, Any]

    def inspect(self) -> Host:
        return inspect_tree(self.tree, pid=self.pid, data_directory=self.data_directory)


@cache
def _unpacked(name: str) -> Path:
    """Return where a machine's files are, for as long as the tests run."""
    directory = Path(_UNPACKED.name) / name
    directory.mkdir()
    unpack((HOSTS / f"{name}.tree").read_text(encoding="utf-8"), directory)
    return directory


def load(name: str) -> Machine:
    """Read a fixture machine."""
    table = tomllib.loads((HOSTS / f"{name}.toml").read_text(encoding="utf-8"))
    stated = table.get("data_directory")
    return Machine(
        tree=FixtureTree(_unpacked(name), tuple(table.get("forbidden", ()))),
        pid=table.get("pid"),
        data_directory=None if stated is None else Path(stated),
        expected=table["facts"],
    )


def facts_of(host: Host) -> dict[str, Fact[Any]]:
    """Return every fact of a host by its dotted name; items of a tuple by their own name."""
    return dict(_facts("", host))


def plain(fact: Fact[Any]) -> Any:
    """Return a fact in the notation of expected.toml."""
    if isinstance(fact.value, Unknown):
        return {"unknown": fact.value.reason, "source": fact.source}
    if _items(fact):
        return [[_short(item) for item in fact.value], fact.source]
    return [to_document(fact.value), fact.source]


def _facts(prefix: str, thing: Any) -> Iterator[tuple[str, Fact[Any]]]:
    if isinstance(thing, Fact):
        yield prefix, thing
        for item in _items(thing):
            yield from _facts(f"{prefix}.{_short(item).split()[0]}", item)
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from _facts(f"{prefix}.{key}", value)
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield from _facts(f"{prefix}.{field.name}".lstrip("."), getattr(thing, field.name))


def _items(fact: Fact[Any]) -> tuple[Any, ...]:
    """Return a fact's items if they have facts themselves."""
    value = fact.value if isinstance(fact.value, tuple) else ()
    return value if value and dataclasses.is_dataclass(value[0]) else ()


def _short(item: Any) -> str:
    if isinstance(item, Mount):
        return f"{item.target} {item.device} {item.filesystem} {','.join(item.options)}"
    return str(item.name)
