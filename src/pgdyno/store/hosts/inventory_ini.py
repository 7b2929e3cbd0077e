"""Ansible inventories in INI: sections of hosts, one to a line with its variables. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from pgdyno.store.hosts.inventory import InventoryGroup

_SECTION = re.compile(r"\[(?P<group>[^\[\]:]+)(?::(?P<kind>children|vars))?\]\s*(?:[#;].*)?")
_RANGE = re.compile(r"\[(?P<first>\w{1,20}):(?P<last>\w{1,20})(?::(?P<step>[1-9]\d{0,3}))?\]", re.ASCII)
_PORT = re.compile(r"(?P<host>[^:\[\]]+):(?P<port>\d+)", re.ASCII)
_MOST_HOSTS = 1000  # of a line: arbitrary
_UNGROUPED = "ungrouped"


def ini_groups(text: str) -> dict[str, InventoryGroup]:
    """Return the groups of an inventory. Raises: ValueError naming a line that cannot be read."""
    groups: dict[str, InventoryGroup] = {}
    group, kind = groups.setdefault(_UNGROUPED, InventoryGroup()), None
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line[0] in "#;":
            continue
        try:
            if section := _SECTION.fullmatch(line):
                group, kind = groups.setdefault(section["group"], InventoryGroup()), section["kind"]
            else:
                _read_line(line, kind, group)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return groups


def _read_line(line: str, kind: str | None, group: InventoryGroup) -> None:
    if kind == "children":
        group.children.add(line.partition("#")[0].strip())
    elif kind == "vars":
        name, is_set, value = line.partition("=")
        if not is_set:
            raise ValueError("not a variable like ansible_user=ada")
        group.variables[name.strip()] = _unquoted(value.strip())
    else:
        pattern, *words = shlex.split(line, comments=True)
        variables = _host_variables(words)
        if found := _PORT.fullmatch(pattern):
            pattern, variables = found["host"], {"ansible_port": found["port"], **variables}
        hosts = [*islice(_hosts(pattern), _MOST_HOSTS + 1)]
        if len(hosts) > _MOST_HOSTS:
            raise ValueError(f'"{pattern}" are more than {_MOST_HOSTS} hosts')
        for host in hosts:
            group.hosts.setdefault(host, {}).update(variables)


def _host_variables(words: Sequence[str]) -> dict[str, object]:
    pairs = [word.partition("=") for word in words]
    if wrong := [name for name, is_set, _ in pairs if not is_set]:
        raise ValueError(f'"{wrong[0]}" is not a variable like ansible_host=10.0.0.1')
    return {name: value for name, _, value in pairs}


def _hosts(pattern: str) -> Iterator[str]:
    """Yield the hosts of a name with ranges: db[1:3], db[01:12:2], db-[a:c]."""
    found = _RANGE.search(pattern)
    if found is None:
        yield pattern
        return
    for one in _between(found["first"], found["last"], int(found["step"] or 1)):
        yield from _hosts(f"{pattern[: found.start()]}{one}{pattern[found.end() :]}")


def _between(first: str, last: str, step: int) -> Iterator[str]:
    if first.isdecimal() and last.isdecimal():
        width = len(first) if first[0] == "0" else 0
        return (str(one).zfill(width) for one in range(int(first), int(last) + 1, step))
    if len(first) == len(last) == 1 and (first + last).isalpha():
        return (chr(one) for one in range(ord(first), ord(last) + 1, step))
    raise ValueError(f'"[{first}:{last}]" is no range like [1:9] or [a:f]')


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value
