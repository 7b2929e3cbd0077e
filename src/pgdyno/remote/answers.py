"""Validate another host's answers: they may be anything, and are displayed and computed with."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pgdyno.base.errors import RemoteHostError

_Text = Annotated[str, Field(max_length=300)]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]
_Time = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
_Rate = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
_MOST_CPUS = 1 << 16


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Answer = TypeVar("Answer", bound=_Strict)


class Failed(_Strict):
    """A system error on the other host."""

    error: _Text


class ClockAnswer(_Strict):
    """The other host's clock."""

    ns: _Count


class ProgramsAnswer(_Strict):
    """A directory with a PostgreSQL."""

    directory: _Text
    version: _Text
    trouble: _Text


class PgdynoAnswer(_Strict):
    """The pgdyno on a login's PATH, or the configured one."""

    program: _Text
    version: _Text
    trouble: _Text


class FactsAnswer(_Strict):
    """The other host and its kernel."""

    host_name: _Text
    user: _Text
    sudo: _Text
    address: _Text
    boot_id: _Text
    kernel: _Text
    machine: _Text
    cpu_model: _Text
    cpus: Annotated[
        list[Annotated[int, Field(ge=0, lt=_MOST_CPUS)]], Field(min_length=1, max_length=_MOST_CPUS)
    ]
    memory_bytes: _Count
    python: _Text
    is_synchronised: bool | None
    postgresql: Annotated[list[ProgramsAnswer], Field(max_length=16)]
    pgdyno: PgdynoAnswer | None


class TrialWriteAnswer(_Strict):
    """The result of writing and removing a file."""

    directory: _Text
    free_bytes: _Count
    trouble: _Text
    may_run_programs: bool


class TakenAwayAnswer(_Strict):
    """The number of processes left by disconnected loads, now ended."""

    ended: _Count


class WakeUpAnswer(_Strict):
    """Wake-up times between two CPUs, in µs."""

    waker: _Count
    woken: _Count
    idle_us: Annotated[list[_Time], Field(max_length=1000)]
    busy_us: Annotated[list[_Time], Field(max_length=1000)]


class ListenAnswer(_Strict):
    """The port that the server's host listens on."""

    port: Annotated[int, Field(gt=0, lt=65536)]


class AcceptAnswer(_Strict):
    """The rate at which the server's host received, and the peer address of the connection."""

    to_server_bytes_per_s: _Rate
    peer: _Text


class ProbeAnswer(_Strict):
    """Round trip time and receiving rate, as measured by a load host."""

    round_trip_s: _Time
    from_server_bytes_per_s: _Rate


def parse_answer(line: bytes, kind: type[Answer]) -> Answer | Failed:
    """Return the answer in a line. Raises: RemoteHostError naming the first validation error."""
    is_failure = line.startswith(b'{"error":')
    try:
        return (Failed if is_failure else kind).model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:100]
        raise RemoteHostError(
            "the host sent an invalid answer",
            detail=f"{place}: {first['msg'].lower()}"[:300] if place else first["msg"].lower()[:300],
        ) from error
