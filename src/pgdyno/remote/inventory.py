"""Read Ansible inventories with ``ansible-inventory``, and convert a cell's hosts to the form of hosts.toml.

Only variables that determine how ssh reaches a host are used. Templates, encrypted values and passwords are
refused for a cell's hosts; other hosts are ignored.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from pgdyno.base.errors import HostsFileError
from pgdyno.host.child_command import family_command
from pgdyno.host.files.trusted_files import require_trusted
from pgdyno.model.cells.cell import CellHosts
from pgdyno.store.files import open_plain
from pgdyno.store.hosts_file import cell_of, read_hosts_file

_LIMIT_S = 60  # a cloud's inventory queries its API
_MOST_MISTAKES = 8  # listed at once
_GUIDE = "docs/guides/two-machines.md"
_PROGRAM = "ansible-inventory"
_ENVIRONMENT = {
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",  # by default: no hosts, and a warning
    "ANSIBLE_LOCALHOST_WARNING": "0",
    "ANSIBLE_NOCOLOR": "1",
    "LC_ALL": "C.UTF-8",
}
_OTHER_VARIABLES = "ANSIBLE_"  # the caller's are removed: some name directories of plugins, which are code
_ROLES = ("server", "load")
_KEYS = {
    "ansible_private_key_file": "key",
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
        "passwords are not supported: use a key",
    ),
    **dict.fromkeys(
        ("ansible_ssh_host", "ansible_ssh_user", "ansible_ssh_port"),
        "an obsolete name: leave out ssh_",
    ),
    **dict.fromkeys(
        ("ansible_ssh_args", "ansible_ssh_extra_args", "ansible_ssh_executable"),
        "not supported: use a Host entry in your ~/.ssh/config instead",
    ),
    **dict.fromkeys(
        ("ansible_private_key", "ansible_ssh_private_key"),
        "not supported: name the key's file with ansible_ssh_private_key_file",
    ),
}


class _Group(BaseModel):
    hosts: list[str] = Field(default_factory=list)
    children: list[str] = Field(default_factory=list)


class _Meta(BaseModel):
    hostvars: dict[str, dict[str, Any]] = Field(default_factory=dict)


_GROUPS = TypeAdapter(dict[str, _Group])


def read_inventory(path: Path) -> dict[str, object]:
    """Return the hosts with a role, as a document in the form of hosts.toml.

    An inventory that is a program is executed. Ansible runs with its default configuration and a temporary
    home directory: without the caller's plugins, collections and vault passwords.

    Raises: HostsFileError if Ansible is not installed or cannot read the file, or if hosts need more than
    plain ssh.
    """
    text = _list(path)
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise HostsFileError(f'{_PROGRAM} did not list "{path}" as JSON', detail=str(error)) from error
    return cell_document(path, listed)


def cell_document(path: Path, listed: object) -> dict[str, object]:
    """Return the hosts of a cell from the output of ``ansible-inventory --list``.

    Raises: HostsFileError for an invalid form, or listing unsupported variables.
    """
    try:
        found = TypeAdapter(dict[str, Any]).validate_python(listed)
        variables = _Meta.model_validate(found.pop("_meta", {})).hostvars
        groups = _GROUPS.validate_python(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise HostsFileError(
            f'{_PROGRAM} did not list groups of hosts in "{path}"',
            detail=f"{where}: {first['msg']}" if where else first["msg"],
        ) from error
    members = {role: _members(groups, role) for role in _ROLES}
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
            f'"{path}" has hosts with unsupported variables',
            detail="; ".join(mistakes[:_MOST_MISTAKES]),
            hint=f"{_GUIDE} lists the supported variables; hosts.toml needs none",
        )
    return {"hosts": hosts}


def _list(path: Path) -> str:
    program = shutil.which(_PROGRAM)
    if program is None:
        raise HostsFileError(
            f'"{path}" is an Ansible inventory, and {_PROGRAM} is not installed',
            hint=f"install ansible-core, or describe the cell in hosts.toml ({_GUIDE})",
        )
    argv = [str(Path(program).absolute()), "--inventory", str(path.absolute()), "--list"]
    with tempfile.TemporaryDirectory(prefix="pgdyno-ansible-") as home:
        configuration = Path(home) / "ansible.cfg"
        configuration.touch()
        own = {"ANSIBLE_HOME": home, "ANSIBLE_CONFIG": str(configuration)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OTHER_VARIABLES)}
        try:
            return _output(path, argv, Path(home), {**kept, **_ENVIRONMENT, **own})
        except OSError as error:
            raise HostsFileError(f"could not run {argv[0]}", detail=error.strerror) from error


def _output(path: Path, argv: list[str], directory: Path, environment: Mapping[str, str]) -> str:
    """Return the output of a program; if interrupted, also terminate all processes it started."""
    with subprocess.Popen(
        family_command(os.getpid(), argv),
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            written, complaints = process.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise HostsFileError(f'{_PROGRAM} did not list "{path}" within {_LIMIT_S:g} s') from error
        finally:
            if process.poll() is None:
                process.terminate()  # its wrapper shell ends the others
    if process.returncode != 0:
        last = " ".join(complaints.split())[-1000:]
        raise HostsFileError(f'{_PROGRAM} could not read "{path}"', detail=last or None)
    return written


def _members(groups: Mapping[str, _Group], group: str) -> set[str]:
    """Return the hosts of a group and of its descendants."""
    hosts, seen, left = set[str](), set[str](), {group}
    while left:
        seen |= left
        here = [groups[name] for name in left & groups.keys()]
        hosts |= {host for one in here for host in one.hosts}
        left = {child for one in here for child in one.children} - seen
    return hosts


def _mistakes(variables: Mapping[str, object]) -> Iterator[str]:
    for name, value in variables.items():
        if name in _REFUSED:
            yield f"{name}: {_REFUSED[name]}"
        elif name in _READ and not _is_plain(value):
            yield f"{name}: must be plain text; templates and encrypted values are not supported here"
    connection = variables.get("ansible_connection", "ssh")
    if _is_plain(connection) and str(connection).removeprefix("ansible.builtin.") not in {"ssh", "smart"}:
        yield "ansible_connection: hosts of a cell must use ssh"
    arguments = variables.get("ansible_ssh_common_args", "")
    if arguments and _is_plain(arguments) and _jump(str(arguments)) is None:
        yield "ansible_ssh_common_args: only ProxyJump is supported (-o ProxyJump=HOST, -J HOST)"


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and "{{" not in str(value)


def _ways(name: str, variables: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of hosts.toml for reaching a host and for its use."""
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
    """Return the jump hosts in ssh's arguments; None if there are any other arguments."""
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


_PURPOSE = "it decides which programs ssh runs here, as you"
_HOW_TO_GROUP = (
    "put hosts into the groups [server] and [load], or give them pgdyno_role=server and pgdyno_role=load"
)
_ELSEWHERE = "move the inventory to a directory where no other user can add variables"
_INVENTORIES = frozenset({"", ".ini", ".yaml", ".yml"})  # "" for names such as /etc/ansible/hosts


def given_cell(file: Path) -> CellHosts:
    """Return the cell in a file.

    Raises: RefusedError if other users could change it; HostsFileError listing all errors in it.
    """
    if os.path.lexists(file):  # checked before opening: another user's pipe would block
        require_trusted(file, _PURPOSE)
        for one in _read_by_ansible(file):  # each directory is checked before it is listed
            require_trusted(one, _PURPOSE, _ELSEWHERE if one == file.absolute().parent else None)
    cell = read_cell(file)
    named = dict.fromkeys([cell.ssh_config, *(host.key for host in cell.all)])
    for one in (file, *filter(None, named)):
        require_trusted(one, _PURPOSE)
    return cell


def read_cell(file: Path) -> CellHosts:
    """Return the cell in hosts.toml or an Ansible inventory.

    Raises: HostsFileError listing all errors in it.
    """
    if file.suffix not in _INVENTORIES:
        return read_hosts_file(file)
    try:
        open_plain(file).close()
    except OSError as error:
        raise HostsFileError(f'could not read "{file}"', detail=error.strerror) from error
    return cell_of(file, read_inventory(file), _HOW_TO_GROUP)


def _read_by_ansible(file: Path) -> Iterator[Path]:
    """Yield an inventory's directory, where files could be added, and the variables' files there.

    Ansible does not read hidden files. Raises: HostsFileError for a directory that cannot be read.
    """
    if file.suffix not in _INVENTORIES:
        return
    parent = file.absolute().parent
    yield parent
    seen = set[Path]()
    left = [parent / name for name in ("group_vars", "host_vars")]
    while left:
        place = left.pop()
        if not os.path.lexists(place):
            continue
        yield place
        if place.is_dir() and (real := place.resolve()) not in seen:  # links may form cycles
            seen.add(real)
            try:
                left += (one for one in place.iterdir() if not one.name.startswith("."))
            except OSError as error:
                raise HostsFileError(f'could not read "{place}"', detail=error.strerror) from error
