"""fleet.toml: an experiment, and the machines that measure it. All mistakes in it are reported at once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pgdyno.base.errors import FleetFileError, UsageError
from pgdyno.base.units import parse_duration_s
from pgdyno.model.experiments.fleet import MACHINE_NAME, FleetOrder, MachineOrder
from pgdyno.store.files import read_toml_file

_MOST_CHARACTERS = 1 << 20  # of a file: arbitrary
_MOST_MACHINES = 2000  # arbitrary: Dask's scheduler has a connection to each
_DEFAULT_LIMIT_S = 6 * 3600.0  # arbitrary: every bundled study takes less
_MEASURING = ("compare", "run")
_GUIDE = "docs/guides/fleets.md"


def _name(text: str) -> str:
    if not MACHINE_NAME.fullmatch(text):
        raise ValueError('not a name of up to 60 letters, digits, ".", "_" and "-"')
    return text


def _words(text: object) -> tuple[str, ...]:
    """Return the words of a command, split like in a shell; no shell runs it."""
    words = tuple(shlex.split(text)) if isinstance(text, str) else ()
    words = words[1:] if words[:1] == ("pgdyno",) else words
    if words[:1] not in {(one,) for one in _MEASURING}:
        raise ValueError("not a command like pgdyno compare … or pgdyno run …")
    return words


def _seconds(text: object) -> float:
    try:
        return parse_duration_s(str(text))
    except UsageError as error:
        raise ValueError("not a duration like 8m, 90s or 1.5h") from error


class _Machine(BaseModel):
    """``[machines.NAME]``."""

    model_config = ConfigDict(extra="forbid")


class _FleetFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    command: Annotated[tuple[str, ...], BeforeValidator(_words)]
    limit: Annotated[float, BeforeValidator(_seconds)] = _DEFAULT_LIMIT_S
    machines: Annotated[
        dict[Annotated[str, AfterValidator(_name)], _Machine], Field(min_length=1, max_length=_MOST_MACHINES)
    ]


def read_fleet_file(path: Path) -> FleetOrder:
    """Return the order in a TOML file. Raises: FleetFileError with all mistakes."""
    if path.suffix != ".toml" or not MACHINE_NAME.fullmatch(path.stem):
        raise FleetFileError(
            f'"{path.name}" is not a valid name of a fleet file',
            detail='it must be NAME.toml, with a NAME of up to 60 letters, digits, ".", "_" and "-"',
            hint="rename it, for example to fleet.toml",
        )
    parsed = read_toml_file(
        path,
        _FleetFile,
        FleetFileError,
        most_characters=_MOST_CHARACTERS,
        if_larger="split it into several fleets",
        if_unreadable=f"{_GUIDE} has an example",
    )
    return FleetOrder(path.stem, MachineOrder(parsed.command, parsed.limit), tuple(parsed.machines))
