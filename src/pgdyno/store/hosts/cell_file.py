"""The file that --cell names: hosts.toml, or an Ansible inventory in INI or YAML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import TextIOWrapper
from pathlib import Path

from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.errors import HostsFileError
from pgdyno.store.hosts.hosts_file import cell_of, read_hosts_file
from pgdyno.store.hosts.inventory import InventoryGroup, cell_document
from pgdyno.store.hosts.inventory_ini import ini_groups
from pgdyno.store.hosts.inventory_yaml import yaml_groups
from pgdyno.store.plain_file import open_plain

_MOST_CHARACTERS = 256 << 10  # arbitrary; a file with 1,000 hosts has 100,000
_MOST_MISTAKES = 8  # listed at once: more do not help
_READERS: Mapping[str, Callable[[str], dict[str, InventoryGroup]]] = {
    "": ini_groups,  # as /etc/ansible/hosts
    ".ini": ini_groups,
    ".yaml": yaml_groups,
    ".yml": yaml_groups,
}
_ROLES = "put hosts into the groups [server] and [load], or give them pgdyno_role=server and pgdyno_role=load"


def read_cell_file(path: Path) -> CellHosts:
    """Return the cell in a file. Raises: HostsFileError listing everything that is wrong with it."""
    reader = _READERS.get(path.suffix)
    if reader is None:
        return read_hosts_file(path)
    try:
        document, wrong = cell_document(reader(_text(path)))
    except (ValueError, RecursionError) as error:
        said = "it nests too deep" if isinstance(error, RecursionError) else str(error)
        raise HostsFileError(f'"{path}" is no inventory of Ansible', detail=said) from error
    if wrong:
        raise HostsFileError(
            f'"{path}" has hosts that cannot be reached as it says',
            detail="; ".join(wrong[:_MOST_MISTAKES]),
            hint="docs/guides/two-machines.md has the variables that are followed; hosts.toml does without",
        )
    return cell_of(path, document, _ROLES)


def _text(path: Path) -> str:
    try:
        with TextIOWrapper(open_plain(path), encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except OSError as error:
        raise HostsFileError(f'could not read "{path}"', detail=str(error.strerror)) from error
    if len(text) > _MOST_CHARACTERS:
        raise HostsFileError(
            f'"{path}" is too large',
            detail=f"it has more than {_MOST_CHARACTERS} characters, the most that are read",
        )
    return text
