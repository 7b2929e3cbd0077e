"""fleet.toml: an experiment, and the machines that make it. Every mistake in it is reported at once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pgdyno.model.errors import FleetFileError, UsageError
from pgdyno.model.fleets.fleet_order import MACHINE_NAME, FleetOrder, OrderedMachine
from pgdyno.model.units import parse_duration_s
from pgdyno.store.toml_file import read_toml_file

_MOST_CHARACTERS = 8 << 20  # of a file: arbitrary; one with 100,000 machines has 5,000,000
_MOST_MACHINES = 100_000
_MOST_TRIALS = 1000  # of a machine: arbitrary
_SEVERAL = "make several fleets of it"
_USUAL_LIMIT_S = 6 * 3600.0  # arbitrary: no bundled study takes as long
_MEASURING = ("compare", "run")


def _name(text: str) -> str:
    if not MACHINE_NAME.fullmatch(text):
        raise ValueError('not a name of up to 40 letters, digits, ".", "_" and "-"')
    return text


def _words(text: object) -> tuple[str, ...]:
    """Return the words of a command as a shell has them; nothing in it is run by one."""
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


_Trials = Annotated[int, Field(ge=1, le=_MOST_TRIALS, strict=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MachineTable(_Strict):
    """``[machines.NAME]``: one machine; its keys go before those of the file."""

    trials: _Trials | None = None
    price_per_hour: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class _FleetFile(_Strict):
    """The whole file."""

    command: Annotated[tuple[str, ...], BeforeValidator(_words)]
    store: Annotated[str, Field(min_length=1)] | None = None
    trials: _Trials = 1
    limit: Annotated[float, BeforeValidator(_seconds)] = _USUAL_LIMIT_S
    price_per_hour: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    machines: Annotated[
        dict[Annotated[str, AfterValidator(_name)], MachineTable],
        Field(min_length=1, max_length=_MOST_MACHINES),
    ]


def read_fleet_file(path: Path) -> FleetOrder:
    """Return the order in a TOML file. Raises: FleetFileError listing everything that is wrong with it."""
    if not MACHINE_NAME.fullmatch(path.stem):
        raise FleetFileError(
            f'"{path.name}" is no name for the file of a fleet',
            detail='the fleet is called like it: by up to 40 letters, digits, ".", "_" and "-"',
            hint="rename it, for example to fleet.toml",
        )
    parsed = read_toml_file(
        path,
        _FleetFile,
        FleetFileError,
        most_characters=_MOST_CHARACTERS,
        if_larger=_SEVERAL,
        if_unreadable="docs/guides/fleets.md has an example",
    )
    return FleetOrder(
        path.stem,
        parsed.command,
        tuple(_machine(name, table, parsed) for name, table in parsed.machines.items()),
        parsed.limit,
        parsed.store,
    )


def _machine(name: str, table: MachineTable, whole: _FleetFile) -> OrderedMachine:
    price = whole.price_per_hour if table.price_per_hour is None else table.price_per_hour
    return OrderedMachine(name, table.trials or whole.trials, price)
