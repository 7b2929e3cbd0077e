"""Facts about host and server as rows, from documents of any version. Pure.

Everything is looked up by path and may be missing, which keeps bundles of other versions readable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.base import numbers
from pgdyno.base.text import shortened
from pgdyno.postgres.guc import format_with_unit

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NOT_CONFIGURED = ("default", "override", "client", "session", "interactive")
_LONGEST_VALUE = 400


@dataclass(frozen=True)
class FactRow:
    """One fact in words. The value of an unknown fact gives the reason."""

    label: str
    value: str
    source: str
    is_known: bool = True


@dataclass(frozen=True)
class ConfiguredSetting:
    """A setting that was configured explicitly, and its source."""

    name: str
    value: str
    origin: str


def host_facts(document: Mapping[str, Any]) -> tuple[FactRow, ...]:
    """Return a host's most important facts, in reading order; unrecorded ones are omitted."""
    return _rows(document, _HOST)


def server_facts(document: Mapping[str, Any]) -> tuple[FactRow, ...]:
    """Return a server's most important facts, in reading order; unrecorded ones are omitted."""
    return _rows(document, _SERVER)


def all_facts(document: Mapping[str, Any], *, without: Sequence[str] = ()) -> tuple[FactRow, ...]:
    """Return every fact of a document by its path, except the top-level members in ``without``."""
    return tuple(_walk({key: value for key, value in document.items() if key not in without}, ""))


def configured_settings(document: Mapping[str, Any]) -> tuple[ConfiguredSetting, ...]:
    """Return the explicitly configured settings, by name."""
    settings = document.get("settings")
    if not isinstance(settings, Mapping):
        return ()
    return tuple(
        ConfiguredSetting(str(name), setting_value(guc), _origin(guc))
        for name, guc in sorted(settings.items())
        if isinstance(guc, Mapping) and guc.get("source") not in _NOT_CONFIGURED
    )


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        return numbers.plain(value)
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, list | Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _size(value: Any) -> str:
    return numbers.size(value) if isinstance(value, int | float) else _plain(value)


def _items(value: Any, show: Callable[[Mapping[str, Any]], str]) -> str:
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        return _plain(value)
    return "; ".join(map(show, value)) or "none"


def _device(item: Mapping[str, Any]) -> Iterator[str]:
    yield str(item.get("name", "?"))
    if (size := _known(item.get("size_bytes"))) is not None:
        yield _size(size)
    if (is_rotational := _known(item.get("is_rotational"))) is not None:
        yield "rotating" if is_rotational else "solid state"
    if (scheduler := _known(item.get("scheduler"))) is not None:
        yield f"scheduler {scheduler}"


def _mount(item: Mapping[str, Any]) -> str:
    return f"{item.get('filesystem', '?')} at {item.get('target', '?')}"


def _count(value: Any) -> str:
    return str(len(value)) if isinstance(value, list) else _plain(value)


_Format = Callable[[Any], str]

_HOST: tuple[tuple[str, str, _Format], ...] = (
    ("Processor", "cpu.model", _plain),
    ("Architecture", "cpu.architecture", _plain),
    ("Logical CPUs", "cpu.logical_count", _plain),
    ("Cores", "cpu.core_count", _plain),
    ("Sockets", "cpu.socket_count", _plain),
    ("NUMA nodes", "cpu.numa_nodes", _plain),
    ("Virtualisation", "cpu.virtualisation", _plain),
    ("Frequency governor", "cpu.governor", _plain),
    ("Frequency (MHz)", "cpu.frequency_mhz", _plain),
    ("Memory", "memory.total_bytes", _size),
    ("Memory limit", "limits.memory_bytes", _size),
    ("CPU limit", "limits.cpu_count", _plain),
    ("Transparent huge pages", "memory.transparent_huge_pages", _plain),
    ("Storage", "block_devices", lambda value: _items(value, lambda one: ", ".join(_device(one)))),
    ("File systems", "mounts", lambda value: _items(value, _mount)),
    ("Kernel", "kernel.release", _plain),
    ("Distribution", "kernel.distribution", _plain),
    ("Host name", "hostname", _plain),
)
_SERVER: tuple[tuple[str, str, _Format], ...] = (
    ("PostgreSQL", "version", _plain),
    ("Build", "build", _plain),
    ("Data", "databases_bytes", _size),
    ("In recovery", "is_in_recovery", _plain),
    ("Standbys", "standbys", _count),
    ("I/O methods", "capabilities.io_methods", _plain),
    ("WAL compression", "capabilities.wal_compression_methods", _plain),
    ("JIT available", "capabilities.has_jit", _plain),
    ("Compiler flags", "capabilities.compiler_flags", _plain),
    ("Data directory", "data_directory", _plain),
    ("Hidden from the role", "hidden", _plain),
)


def _rows(document: Mapping[str, Any], entries: Sequence[tuple[str, str, _Format]]) -> tuple[FactRow, ...]:
    found = ((label, _at(document, path), show) for label, path, show in entries)
    return tuple(_row(*one) for one in found if one[1] is not None and one[1] not in ([], ""))


def _row(label: str, node: Any, show: _Format) -> FactRow:
    if not _is_fact(node):
        return FactRow(label, shortened(show(node), _LONGEST_VALUE), "")
    source = str(node.get("source", ""))
    if "unknown" in node:
        return FactRow(label, f"unknown: {node['unknown']}", source, is_known=False)
    return FactRow(label, shortened(show(node["value"]), _LONGEST_VALUE), source)


def _walk(node: Any, path: str) -> Iterator[FactRow]:
    if isinstance(node, Mapping) and not _is_fact(node):
        for key, value in node.items():
            yield from _walk(value, f"{path}.{key}" if path else str(key))
    else:
        yield _row(path, node, _plain)


def _at(document: Mapping[str, Any], path: str) -> Any:
    node: Any = document
    for step in path.split("."):
        if not isinstance(node, Mapping) or step not in node:
            return None
        node = node[step]
    return node


def _known(node: Any) -> Any:
    return node.get("value") if _is_fact(node) else node


def _is_fact(node: Any) -> bool:
    """Whether a node has the form of a fact written by ``base/facts.py``."""
    return isinstance(node, Mapping) and ("unknown" in node or ("value" in node and "source" in node))


def setting_value(guc: Mapping[str, Any]) -> str:
    """Return a setting's value from its document, with a readable unit."""
    setting, unit = str(guc.get("setting", "")), guc.get("unit")
    if unit and _NUMBER.fullmatch(setting):
        return format_with_unit(setting, str(unit))
    return shortened(setting, _LONGEST_VALUE) or "''"


def _origin(guc: Mapping[str, Any]) -> str:
    file, number = guc.get("sourcefile"), guc.get("sourceline")
    return f"{file}:{number}" if file and number else str(file or guc.get("source", ""))
