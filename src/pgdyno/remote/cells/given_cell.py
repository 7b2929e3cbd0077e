"""The cell that a file describes, if nobody else can change that file, or those that it names for ssh."""

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
_ELSEWHERE = "put the inventory into a directory where nobody else can add variables to it"
_INVENTORIES = frozenset({"", ".ini", ".yaml", ".yml"})  # without an ending as /etc/ansible/hosts


def given_cell(file: Path) -> CellHosts:
    """Return the cell in a file.

    Raises: RefusedError if others could change it; HostsFileError listing everything that is wrong with it.
    """
    if os.path.lexists(file):  # a pipe of somebody else's is not waited for
        require_trusted(file, _PURPOSE)
        for one in _read_by_ansible(file):  # each before it is entered
            require_trusted(one, _PURPOSE, _ELSEWHERE if one == file.absolute().parent else None)
    cell = read_cell(file)
    named = dict.fromkeys([cell.ssh_config, *(host.key for host in cell.all)])
    for one in (file, *filter(None, named)):
        require_trusted(one, _PURPOSE)
    return cell


def read_cell(file: Path) -> CellHosts:
    """Return the cell in hosts.toml or an inventory of Ansible.

    Raises: HostsFileError listing everything that is wrong with it.
    """
    if file.suffix not in _INVENTORIES:
        return read_hosts_file(file)
    try:
        open_plain(file).close()
    except OSError as error:
        raise HostsFileError(f'could not read "{file}"', detail=error.strerror) from error
    return cell_of(file, read_inventory(file), _ROLES)


def _read_by_ansible(file: Path) -> Iterator[Path]:
    """Return the directory of an inventory, where more could be put, and the variables beside it.

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
        if place.is_dir() and (real := place.resolve()) not in seen:  # links may lead in circles
            seen.add(real)
            try:
                left += (one for one in place.iterdir() if not one.name.startswith("."))
            except OSError as error:
                raise HostsFileError(f'could not read "{place}"', detail=error.strerror) from error
