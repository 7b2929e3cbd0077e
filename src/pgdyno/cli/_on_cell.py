"""``--cell`` of all commands that work on a server: they run on the server's host, or are carried there.

Commands that load hosts can load take ``--allow-fewer`` with it, and are given the source of their load.
"""

from __future__ import annotations

import copy
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._as_typed import LOADED_BY_CELL, LOADED_THERE
from pgdyno.cli._load_hosts import warn_of_load
from pgdyno.cli.output import Relayed

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.measure.arenas.load_source import LoadSource
    from pgdyno.model.cells.cell import CellHosts

WORDS = "pgdyno.words"
"""Where the context has the words of the command line behind the command's name."""

_OPTION, _PARAMETER = "--cell", "cell_file"
_WHERE = "Run it on the server's host of the cell in FILE, by ssh if that is another machine"
_GUIDE = "(docs/guides/two-machines.md)."
_WORKLOAD_FILE = ".toml"


def with_cell(command: click.Command) -> click.Command:
    """Return a command that also takes ``--cell``; with ``--allow-fewer`` if its load can come from there."""
    name = command.name or ""
    is_loaded = name in LOADED_BY_CELL
    option = click.Option(
        [_OPTION, _PARAMETER],
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"{_WHERE}, with load from its load hosts {_GUIDE}" if is_loaded else f"{_WHERE} {_GUIDE}",
    )
    made, own = copy.copy(command), command.callback
    options = [_allow_fewer(), option] if is_loaded else [option]
    made.params = [*command.params[:-1], *options, command.params[-1]]  # --json is the last one

    def run(*, cell_file: Path | None, **options: Any) -> object:
        assert own is not None  # noqa: S101 — all commands have one
        cell = None if cell_file is None else _cell_here(name, cell_file)
        if not is_loaded:
            return own(**options)
        return own(load_from=_load_source(cell, allows_fewer=options.pop("allow_fewer")), **options)

    made.callback = run
    return made


def _allow_fewer() -> click.Option:
    return click.Option(
        ["--allow-fewer"],
        is_flag=True,
        help="With --cell: when a load host is lost, go on at once with the others. "
        "Otherwise it is waited for.",
    )


def _load_source(cell: CellHosts | None, *, allows_fewer: bool) -> LoadSource | None:
    """Return the cell's load hosts; None without a cell. Raises: UsageError."""
    if cell is not None:
        from pgdyno.measure.load_hosts import FromCell

        return FromCell(cell, allows_fewer)
    if allows_fewer:
        raise UsageError(
            "--allow-fewer is for load hosts, and there are none", hint=f"name them: {_OPTION} FILE"
        )
    return None


def _cell_here(name: str, file: Path) -> CellHosts:
    """Return the cell if its server's host is this machine; otherwise carry the command there, and leave."""
    from pgdyno.model.cells.cell import IS_CARRIED
    from pgdyno.remote.cells.given_cell import given_cell
    from pgdyno.remote.cells.own_address import is_this_machine, require_address

    cell = given_cell(file)
    if name in LOADED_BY_CELL:
        require_address(cell.server)
    if IS_CARRIED not in os.environ and not is_this_machine(cell.server):
        _carry(name, cell)
    if name in LOADED_THERE:
        warn_of_load(name, cell)
    return cell


def _carry(name: str, cell: CellHosts) -> NoReturn:
    """Run the command on the server's host, and leave with its exit code."""
    from pgdyno.model.cells.cell import TypedAt
    from pgdyno.remote.carried_command import CarriedCommand
    from pgdyno.remote.cells.carry import carry
    from pgdyno.remote.ssh import by_hand
    from pgdyno.store.hosts_file import hosts_file_text

    context = click.get_current_context()
    _require_files_there(context, cell)
    if name in LOADED_THERE:
        warn_of_load(name, cell)
    words = (name, *_without_cell(context.meta[WORDS]))
    hosts = (f"{Path(cell.file_name).stem}.toml", hosts_file_text(cell)) if name in LOADED_BY_CELL else ()
    there = f"{by_hand(cell.server, cell.ssh_config)} {shlex.quote(cell.server.pgdyno or 'pgdyno')}"
    command = CarriedCommand(words, TypedAt(str(context.params[_PARAMETER]), there), *hosts)
    output, errors = Relayed(sys.stdout), Relayed(sys.stderr)
    sys.exit(carry(cell, command, lambda is_error, part: (errors if is_error else output).write(part)))


def _require_files_there(context: click.Context, cell: CellHosts) -> None:
    """Raise UsageError for files that are looked for beside us: the command looks for them there."""
    for option, path in _named_files(context):
        if not Path(path).is_absolute():
            raise UsageError(
                f'{option} "{path}" would be a file of {cell.server.name}, where the command runs',
                detail="files stay where they are: pgdyno carries none from here to there, or back",
                hint=f"put it there, and give its absolute path on {cell.server.name}",
            )


def _named_files(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield all files and directories that the command line names, each with its option or argument."""
    for parameter in context.command.get_params(context):
        given = context.params.get(parameter.name or "")
        if parameter.name == _PARAMETER or not given:
            continue
        is_file = isinstance(parameter.type, click.Path) or parameter.name == "scripts"
        is_option = isinstance(parameter, click.Option)
        for one in given if isinstance(given, tuple) else (given,):
            if is_file or (isinstance(one, str) and one.endswith(_WORKLOAD_FILE)):
                yield parameter.opts[0] if is_option else parameter.make_metavar(context), str(one)


def _without_cell(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line but ``--cell FILE``."""
    left = iter(words)
    for word in left:
        if word == "--":
            yield word
            yield from left
        elif word == _OPTION:
            next(left, None)
        elif not word.startswith(f"{_OPTION}="):
            yield word
