"""``--cell``, for all commands that work on a server: run on the server's host, by ssh if necessary.

Commands that can use load hosts also take ``--allow-fewer`` and receive the load source as ``load_from``.
"""

from __future__ import annotations

import copy
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import LOADED_BY_CELL, LOADED_THERE, Relayed

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.measure.conditions import LoadSource
    from pgdyno.model.cells.cell import CellHosts

WORDS = "pgdyno.words"
"""Key in click's context: the words of the command line after the command's name."""

_OPTION, _PARAMETER = "--cell", "cell_file"
_WHERE = "Run on the server's host of the cell in FILE, by ssh if that is another machine"
_GUIDE = "(docs/guides/two-machines.md)."
_WORKLOAD_FILE = ".toml"
_SQL_OF_VARIANT = re.compile(r"[:,]\s*sql=", re.IGNORECASE)


def with_cell(command: click.Command) -> click.Command:
    """Return a copy of a command with ``--cell``, and ``--allow-fewer`` if it can use load hosts."""
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
        help="With --cell: if a load host is lost, continue at once with the others instead of waiting for "
        "it.",
    )


def _load_source(cell: CellHosts | None, *, allows_fewer: bool) -> LoadSource | None:
    """Return the cell's load hosts; None without a cell. Raises: UsageError."""
    if cell is not None:
        from pgdyno.measure.load_hosts import FromCell

        return FromCell(cell, allows_fewer)
    if allows_fewer:
        raise UsageError(
            "--allow-fewer requires load hosts, and none are named", hint=f"name them: {_OPTION} FILE"
        )
    return None


def _cell_here(name: str, file: Path) -> CellHosts:
    """Return the cell if its server's host is this machine; otherwise run the command there and exit."""
    from pgdyno.cli.measuring import warn_of_load
    from pgdyno.model.cells.cell import IS_CARRIED
    from pgdyno.remote.cells.own_address import is_this_machine, require_address
    from pgdyno.remote.inventory import given_cell

    cell = given_cell(file)
    if name in LOADED_BY_CELL:
        require_address(cell.server)
    if IS_CARRIED not in os.environ and not is_this_machine(cell.server):
        _run_there(name, cell)
    if name in LOADED_THERE:
        warn_of_load(name, cell)
    return cell


def _run_there(name: str, cell: CellHosts) -> NoReturn:
    from pgdyno.cli.measuring import warn_of_load
    from pgdyno.model.cells.cell import TypedAt
    from pgdyno.remote.cells.forward import carry
    from pgdyno.remote.forwarded_command import CarriedCommand
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
    """Raise UsageError for relative paths: the command would resolve them on the server's host.

    Files of SQL are refused, because no variant runs SQL with load from other hosts.
    """
    for variant in context.params.get("variants", ()):
        if _SQL_OF_VARIANT.search(variant):
            raise UsageError(
                f'"{variant}" runs SQL, which --cell does not support yet',
                hint="leave out --cell: compare the schemas with load from this machine",
            )
    for option, path in _named_files(context):
        if not Path(path).is_absolute():
            raise UsageError(
                f'{option} "{path}" would be a file of {cell.server.name}, where the command runs',
                detail="pgdyno copies no files between the machines",
                hint=f"copy it there, and give its absolute path on {cell.server.name}",
            )


def _named_files(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield (option or argument, path) of each file and directory on the command line."""
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
    """Yield the words of a command line without ``--cell FILE``."""
    left = iter(words)
    for word in left:
        if word == "--":
            yield word
            yield from left
        elif word == _OPTION:
            next(left, None)
        elif not word.startswith(f"{_OPTION}="):
            yield word
