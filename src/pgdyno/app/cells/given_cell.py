"""The cell that a file describes, if nobody else can change that file, or those that it names for ssh."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.app.trusted_files import require_trusted
from pgdyno.model.cells.cell import CellHosts
from pgdyno.store.hosts.cell_file import read_cell_file

_PURPOSE = "it decides which programs ssh runs here, as you"


def given_cell(file: Path) -> CellHosts:
    """Return the cell in a file.

    Raises: RefusedError if others could change it; HostsFileError listing everything that is wrong with it.
    """
    if os.path.lexists(file):  # a pipe of somebody else's is not waited for
        require_trusted(file, _PURPOSE)
    cell = read_cell_file(file)
    named = dict.fromkeys([cell.ssh_config, *(host.key for host in cell.all)])
    for one in (file, *filter(None, named)):
        require_trusted(one, _PURPOSE)
    return cell
