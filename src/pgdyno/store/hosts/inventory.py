"""Ansible inventories: from groups of hosts with variables to the hosts of a cell. Pure.

A subset: what decides how ssh reaches a host. Anything that Ansible would work out while it runs (templates,
encrypted values, passwords) is refused for a host of the cell; of other hosts nothing is read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

_ROLES = ("server", "load")
ENCRYPTED = "{{ encrypted }}"
"""Stands for a value that only Ansible can read; it is refused like a template."""

_ALL = "all"
_TEMPLATE = "{{"
_LISTS = (list, tuple, set, dict)
_TAKEN_AS_THEY_ARE = {
    "ansible_ssh_private_key_file": "key",
    "pgdyno_address": "address",
    "pgdyno_postgresql": "postgresql",
    "pgdyno_program": "pgdyno",
    "pgdyno_cpus": "cpus",
}
_REACHED_BY = (
    "ansible_host",
    "ansible_user",
    "ansible_port",
    "ansible_ssh_common_args",
    "ansible_connection",
)
_REFUSED = {
    **dict.fromkeys(
        ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password"),
        "ssh is given no password: use a key",
    ),
    **dict.fromkeys(
        ("ansible_ssh_host", "ansible_ssh_user", "ansible_ssh_port"),
        "an old name: leave out ssh_",
    ),
    **dict.fromkeys(
        ("ansible_ssh_extra_args", "ansible_ssh_executable"),
        "not followed: write a Host of your ~/.ssh/config instead",
    ),
}


@dataclass
class InventoryGroup:
    """A group: its hosts with their own variables, its variables, and the names of its child groups."""

    hosts: dict[str, dict[str, object]] = field(default_factory=dict)
    variables: dict[str, object] = field(default_factory=dict)
    children: set[str] = field(default_factory=set)


def cell_document(groups: Mapping[str, InventoryGroup]) -> tuple[dict[str, object], list[str]]:
    """Return the hosts that have a role, as hosts.toml would have them, and their mistakes.

    Raises: ValueError if a group is below itself.
    """
    mistakes: list[str] = []
    hosts = {}
    parents = {name: {one for one, group in groups.items() if name in group.children} for name in groups}
    order = _order(parents)
    for host in dict.fromkeys(host for group in groups.values() for host in group.hosts):
        of = _with_ancestors({name for name, group in groups.items() if host in group.hosts}, parents)
        variables: dict[str, object] = {}
        for name in sorted(of | (groups.keys() & {_ALL}), key=order.__getitem__):
            variables |= groups[name].variables
        for group in groups.values():
            variables |= group.hosts.get(host, {})
        role = variables.get("pgdyno_role", next((one for one in _ROLES if one in of), None))
        if role is None:
            continue
        if found := [f'"{host}": {said}' for said in _mistakes(variables)]:
            mistakes += found
        else:
            hosts[host] = {"role": role, **_ways(host, variables)}
    return {"hosts": hosts}, mistakes


def _order(parents: Mapping[str, set[str]]) -> dict[str, tuple[int, str]]:
    """Return when each group has its say: the farther below "all", the later, then by name."""
    order: dict[str, tuple[int, str]] = {}
    try:
        for name in TopologicalSorter(parents).static_order():
            above = [order[one][0] for one in parents[name]]
            order[name] = (0 if name == _ALL else 1 + max(above, default=0), name)
    except CycleError as error:
        raise ValueError(f"groups are below themselves: {', '.join(error.args[1])}") from error
    return order


def _with_ancestors(names: set[str], parents: Mapping[str, set[str]]) -> set[str]:
    found, left = set[str](), names
    while left:
        found |= left
        left = {one for name in left for one in parents[name]} - found
    return found


def _mistakes(variables: Mapping[str, object]) -> Iterator[str]:
    if lists := [name for name, value in variables.items() if _is_read(name) and isinstance(value, _LISTS)]:
        # Aliases in one make its text as long as they like.
        yield f"{', '.join(lists)}: a text is wanted, not a list or a mapping"
        return
    for name, value in variables.items():
        if name in _REFUSED:
            yield f"{name}: {_REFUSED[name]}"
        elif _is_read(name) and _TEMPLATE in str(value):
            yield f"{name}: templates and encrypted values are not worked out here"
    connection = variables.get("ansible_connection", "ssh")
    if connection not in {"ssh", "smart"}:
        yield "ansible_connection: hosts of a cell are reached by ssh"
    arguments = variables.get("ansible_ssh_common_args", "")
    if arguments and _TEMPLATE not in str(arguments) and _jump(str(arguments)) is None:
        yield "ansible_ssh_common_args: only ProxyJump is followed (-o ProxyJump=HOST, -J HOST)"


def _is_read(name: str) -> bool:
    return name in _REACHED_BY or name in _TAKEN_AS_THEY_ARE or name == "pgdyno_role"


def _ways(name: str, variables: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of hosts.toml that say how a host is reached and used."""
    host = str(variables.get("ansible_host", name))
    user = f"{variables['ansible_user']}@" if "ansible_user" in variables else ""
    if "ansible_port" in variables:
        host = f"[{host}]" if ":" in host else host
        destination = f"ssh://{user}{host}:{variables['ansible_port']}"
    else:
        destination = f"{user}{host}"
    found = {key: variables[one] for one, key in _TAKEN_AS_THEY_ARE.items() if one in variables}
    if isinstance(found.get("cpus"), int):
        found["cpus"] = str(found["cpus"])  # one CPU
    jump = _jump(str(variables.get("ansible_ssh_common_args", "")))
    return {"ssh": destination, **found, **({"jump": jump} if jump else {})}


def _jump(arguments: str) -> str | None:
    """Return the hosts on the way that arguments of ssh name; None if they say anything else."""
    try:
        words = shlex.split(arguments)
    except ValueError:
        return None
    match words:
        case ["-J", hosts]:
            return hosts
        case ["-o", option]:
            pass
        case [joined] if joined.startswith("-o"):
            option = joined[2:]
        case _:
            return None
    key, _, hosts = option.replace(" ", "=", 1).partition("=")
    return hosts if key.lower() == "proxyjump" and hosts else None
