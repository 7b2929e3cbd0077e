"""Ansible inventories, read by ``ansible-inventory``: the hosts of a cell as hosts.toml would have them.

Of the variables those count that decide how ssh reaches a host. Templates, encrypted values and passwords are
refused for a host of the cell; other hosts are not looked at.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pgdyno.model.errors import HostsFileError
from pgdyno.model.hosts.child_command import child_command

_LIMIT_S = 60  # an inventory of a cloud asks its interface
_MOST_MISTAKES = 8  # listed at once: more do not help
_GUIDE = "docs/guides/two-machines.md"
_PROGRAM = "ansible-inventory"
_ENVIRONMENT = {
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",  # otherwise it has no hosts, and a warning
    "ANSIBLE_LOCALHOST_WARNING": "0",
    "ANSIBLE_NOCOLOR": "1",
    "LC_ALL": "C.UTF-8",
}
_ROLES = ("server", "load")
_KEYS = {
    "ansible_ssh_private_key_file": "key",
    "pgdyno_address": "address",
    "pgdyno_postgresql": "postgresql",
    "pgdyno_program": "pgdyno",
    "pgdyno_cpus": "cpus",
}
_READ = {
    *_KEYS,
    "ansible_host",
    "ansible_user",
    "ansible_port",
    "ansible_ssh_common_args",
    "ansible_connection",
    "pgdyno_role",
}
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


def read_inventory(path: Path) -> dict[str, object]:
    """Return the hosts that have a role, as a document of hosts.toml's form.

    Ansible runs in the inventory's directory, with the ansible.cfg there. It executes an inventory that is a
    program.

    Raises: HostsFileError if Ansible is not installed or does not read the file, or hosts are not reached by
    ssh alone.
    """
    return cell_document(path, _listed(path))


def cell_document(path: Path, listed: Mapping[str, Any]) -> dict[str, object]:
    """Return the hosts of a cell in the output of ``ansible-inventory --list``.

    Raises: HostsFileError listing the variables that are not followed.
    """
    variables: Mapping[str, Mapping[str, object]] = listed.get("_meta", {}).get("hostvars", {})
    members = {role: _members(listed, role) for role in _ROLES}
    hosts, mistakes = {}, []
    for host in sorted({*variables, *members["server"], *members["load"]}):
        own = variables.get(host, {})
        role = own.get("pgdyno_role", next((one for one in _ROLES if host in members[one]), None))
        if role is None:
            continue
        mistakes += [f'"{host}": {mistake}' for mistake in _mistakes(own)]
        hosts[host] = {"role": role, **_ways(host, own)}
    if mistakes:
        raise HostsFileError(
            f'"{path}" has hosts that cannot be reached as it says',
            detail="; ".join(mistakes[:_MOST_MISTAKES]),
            hint=f"{_GUIDE} has the variables that are followed; hosts.toml does without",
        )
    return {"hosts": hosts}


def _listed(path: Path) -> Mapping[str, Any]:
    program = shutil.which(_PROGRAM)
    if program is None:
        raise HostsFileError(
            f'"{path}" is an inventory of Ansible, and {_PROGRAM} is not installed',
            hint=f"install ansible-core, or describe the cell in hosts.toml ({_GUIDE})",
        )
    argv = [program, "--inventory", str(path.absolute()), "--list"]
    try:
        done = subprocess.run(
            child_command(os.getpid(), argv),
            cwd=path.absolute().parent,
            env={**os.environ, **_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=_LIMIT_S,
        )
        listed = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise HostsFileError(f'{_PROGRAM} did not list "{path}" within {_LIMIT_S} s') from error
    except subprocess.CalledProcessError as error:
        last = " ".join(error.stderr.split())[-1000:]
        raise HostsFileError(f'{_PROGRAM} could not read "{path}"', detail=last) from error
    except ValueError as error:
        raise HostsFileError(f'{_PROGRAM} did not list "{path}" as JSON', detail=str(error)) from error
    if not isinstance(listed, dict) or not all(isinstance(one, dict) for one in listed.values()):
        raise HostsFileError(f'{_PROGRAM} did not list groups of "{path}"')
    return listed


def _members(listed: Mapping[str, Any], group: str) -> set[str]:
    """Return the hosts of a group and of the groups below it."""
    hosts, seen, left = set[str](), set[str](), {group}
    while left:
        seen |= left
        groups = [listed.get(name, {}) for name in left]
        hosts |= {host for one in groups for host in one.get("hosts", ())}
        left = {child for one in groups for child in one.get("children", ())} - seen
    return hosts


def _mistakes(variables: Mapping[str, object]) -> Iterator[str]:
    for name, value in variables.items():
        if name in _REFUSED:
            yield f"{name}: {_REFUSED[name]}"
        elif name in _READ and (not isinstance(value, str | int) or "{{" in str(value)):
            yield f"{name}: a plain text is wanted; templates and encrypted values are not worked out here"
    if variables.get("ansible_connection", "ssh") not in {"ssh", "smart"}:
        yield "ansible_connection: hosts of a cell are reached by ssh"
    arguments = str(variables.get("ansible_ssh_common_args", ""))
    if arguments and "{{" not in arguments and _jump(arguments) is None:
        yield "ansible_ssh_common_args: only ProxyJump is followed (-o ProxyJump=HOST, -J HOST)"


def _ways(name: str, variables: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of hosts.toml for the way to a host and its use."""
    host = str(variables.get("ansible_host", name))
    user = f"{variables['ansible_user']}@" if "ansible_user" in variables else ""
    if "ansible_port" in variables:
        host = f"[{host}]" if ":" in host else host
        destination = f"ssh://{user}{host}:{variables['ansible_port']}"
    else:
        destination = f"{user}{host}"
    found = {key: str(variables[one]) for one, key in _KEYS.items() if one in variables}
    jump = _jump(str(variables.get("ansible_ssh_common_args", "")))
    return {"ssh": destination, **found, **({"jump": jump} if jump else {})}


def _jump(arguments: str) -> str | None:
    """Return the jump hosts in arguments of ssh; None if these have anything else."""
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
