"""hosts.toml: the hosts of a cell. All mistakes in it are reported at once."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any

import tomlkit
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pgdyno.base.errors import HostsFileError
from pgdyno.host.cpu_list import parse_cpu_list
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.store.files import mistakes, read_toml_file

_MOST_CHARACTERS = 64 << 10  # arbitrary; a file with 64 hosts has 8,000
_MOST_HOSTS = 64  # arbitrary: each needs a connection and a thread
_SPLIT = "a file describes one cell: split it"

# ssh parses arguments beginning with "-" as options, and passes names to the shell that runs a ProxyCommand.
_DESTINATION = re.compile(r"(ssh://)?[A-Za-z0-9_:\[][A-Za-z0-9_.:@%\[\]-]*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)


def _destination(text: str) -> str:
    if not _DESTINATION.fullmatch(text):
        raise ValueError("not a destination of ssh like db1, postgres@db1 or ssh://postgres@db1:2222")
    return text


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError('not a name of letters, digits, ".", "_" and "-"')
    return text


def _jumps(text: str) -> str:
    for part in text.split(","):
        _destination(part)
    return text


def _address(text: str) -> str:
    if _NAME.fullmatch(text):  # of a host, or an address of IPv4
        return text
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError("neither an address nor the name of a host") from None


def _cpus(text: object) -> tuple[int, ...]:
    found = parse_cpu_list(text) if isinstance(text, str) else None
    if not found:
        raise ValueError("not a list of CPUs like 0-3,8")
    return found


def _absolute(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise ValueError("not an absolute path")
    return text


_Text = Annotated[str, Field(min_length=1, max_length=250)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HostTable(_Strict):
    """``[hosts.NAME]``: one host."""

    role: HostRole
    ssh: Annotated[_Text, AfterValidator(_destination)] | None = None
    jump: Annotated[_Text, AfterValidator(_jumps)] | None = None
    key: _Text | None = None
    address: Annotated[_Text, AfterValidator(_address)] | None = None
    postgresql: Annotated[_Text, AfterValidator(_absolute)] | None = None
    pgdyno: Annotated[_Text, AfterValidator(_absolute)] | None = None
    cpus: Annotated[tuple[int, ...], BeforeValidator(_cpus)] = ()


class _HostsFile(_Strict):
    ssh_config: _Text | None = None
    probe_port: Annotated[int, Field(ge=0, lt=65536, strict=True)] = 0
    hosts: Annotated[dict[Annotated[str, AfterValidator(_name)], HostTable], Field(max_length=_MOST_HOSTS)]


def read_hosts_file(path: Path) -> CellHosts:
    """Return the cell in a TOML file. File names in it are relative to its directory; ``~`` is expanded.

    Raises: HostsFileError with all mistakes.
    """
    parsed = read_toml_file(
        path,
        _HostsFile,
        HostsFileError,
        most_characters=_MOST_CHARACTERS,
        if_larger=_SPLIT,
        if_unreadable="docs/guides/two-machines.md has an example; name another file with --cell",
    )
    return _cell(
        path, parsed, 'give each host a role: [hosts.db1] role = "server", [hosts.client1] role = "load"'
    )


def cell_of(path: Path, document: object, if_roles_are_wrong: str) -> CellHosts:
    """Return the cell in a document of hosts.toml's form from another file; ``if_roles_are_wrong`` is a hint.

    Raises: HostsFileError with all mistakes.
    """
    try:
        return _cell(path, _HostsFile.model_validate(document), if_roles_are_wrong)
    except ValidationError as error:
        raise mistakes(path, error, HostsFileError) from error


def _cell(path: Path, parsed: _HostsFile, if_roles_are_wrong: str) -> CellHosts:
    hosts = [_host(name, table, path.parent) for name, table in parsed.hosts.items()]
    servers = [host for host in hosts if host.role is HostRole.SERVER]
    loads = [host for host in hosts if host.role is HostRole.LOAD]
    if len(servers) != 1 or not loads:
        raise HostsFileError(
            f'"{path}" has {len(servers)} servers and {len(loads)} load hosts',
            detail="a cell has one server and one load host or more",
            hint=if_roles_are_wrong,
        )
    return CellHosts(
        server=servers[0],
        loads=tuple(loads),
        ssh_config=None if parsed.ssh_config is None else _file(path.parent, parsed.ssh_config),
        probe_port=parsed.probe_port,
        file_name=path.name,
    )


def hosts_file_text(cell: CellHosts) -> str:
    """Return hosts.toml for the server's host, without references to files of this machine."""
    document: dict[str, Any] = {"probe_port": cell.probe_port, "hosts": {}}
    for host in cell.all:
        is_load = host.role is HostRole.LOAD
        given = {
            "role": host.role.value,
            "ssh": host.destination if is_load else None,
            "jump": host.jump if is_load else None,
            "address": host.address,
            "postgresql": host.postgresql,
            "cpus": ",".join(map(str, host.cpus)) or None,
        }
        document["hosts"][host.name] = {key: value for key, value in given.items() if value is not None}
    return tomlkit.dumps(document)


def _host(name: str, table: HostTable, directory: Path) -> CellHost:
    return CellHost(
        name=name,
        role=table.role,
        destination=table.ssh or name,
        jump=table.jump,
        key=None if table.key is None else _file(directory, table.key),
        address=table.address,
        postgresql=table.postgresql,
        pgdyno=table.pgdyno,
        cpus=table.cpus,
    )


def _file(directory: Path, name: str) -> Path:
    """Return a file that hosts.toml refers to. Raises: HostsFileError if it does not exist.

    ssh would continue without a missing key, and report only that a configuration cannot be opened.
    """
    try:
        file = (directory / Path(name).expanduser()).absolute()
        exists = file.is_file()
    except (RuntimeError, ValueError):  # ~ of an unknown user, a NUL
        file, exists = Path(name), False
    if not exists:
        raise HostsFileError(
            f'file "{file}" does not exist', hint='correct "key" or "ssh_config" in the cell\'s file'
        )
    return file
