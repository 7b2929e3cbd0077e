"""Read a cell from a file, provided that no other user can change it or the files it names for ssh."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pgdyno.base.errors import HostsFileError
from pgdyno.host.files.trusted_files import require_trusted
from pgdyno.model.cells.cell import CellHosts
from pgdyno.remote.inventory import read_inventory
from pgdyno.store.files import open_plain
from pgdyno.store.hosts_file import cell_of, read_hosts_file

_PURPOSE = "it decides which programs ssh runs here, as you"
_ROLES = "put hosts into the groups [server] and [load], or give them pgdyno_role=server and pgdyno_role=load"
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
    return cell_of(file, read_inventory(file), _ROLES)


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
