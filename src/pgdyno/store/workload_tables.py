"""The tables of a workload file, as pydantic models that check them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

from pgdyno.model.experiments.captured import (
    PARAMETERISED,
    QUANTITIES,
    ArrayOf,
    Between,
    ColumnValue,
    Constant,
    Distribution,
    Invariant,
    Is,
    Letters,
    NewKey,
    NoRows,
    OneOf,
    Ordinal,
    Parameter,
    Protocol,
    Quantity,
    RangeEnd,
    ReturnedValue,
    SameValue,
    Unchanged,
    Uuid,
)
from pgdyno.postgres.statement_counts import Seen


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Pause = Annotated[float, Field(ge=0, le=1e6)]  # the limit of the driver


class ParameterTable(_Strict):
    """One parameter: exactly one way to draw it."""

    column: str | None = None
    array: Annotated[int, Field(ge=1, le=10_000)] | None = None
    new_key: str | None = None
    same_as: Annotated[int, Field(ge=1)] | None = None
    range_from: Annotated[int, Field(ge=1)] | None = None
    range_to: Annotated[int, Field(ge=1)] | None = None
    widths: list[FiniteFloat] = Field(default_factory=list)
    rows: Weight | None = None
    open: bool = False
    returned: Annotated[int, Field(ge=1, le=1664)] | None = None
    of: str | None = None
    plus: int = 0
    between: tuple[int, int] | None = None
    distribution: Distribution = "uniform"
    parameter: FiniteFloat | None = None
    letters: tuple[int, int] | None = None
    constant: str | None = None
    one_of: Annotated[list[str], Field(min_length=1)] | None = None
    weights: list[Weight] = Field(default_factory=list)
    nulls: Weight = 0.0
    ordinal: bool = False
    uuid: bool = False
    null: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [
            *(None if self._is_range else self.column, self.new_key, self.same_as, self.range_from),
            *(self.range_to, self.returned, self.between, self.letters, self.constant, self.one_of),
        ]
        if sum(way is not None for way in ways) + self.null + self.uuid + self.ordinal != 1:
            raise ValueError(
                "a parameter has exactly one of column, new_key, same_as, range_from, range_to, returned, "
                "between, letters, constant, one_of, ordinal, uuid, null"
            )
        self._check_company()
        return self

    def _check_company(self) -> None:
        """Raise ValueError for a member without the one that it belongs to."""
        if self.array is not None and (self.column is None or self._is_range):
            raise ValueError('"array" belongs to "column"')
        if self._is_range and self.column is None:
            raise ValueError('"range_from" and "range_to" need the "column" of the range')
        if not self._is_range and (self.widths or self.rows is not None or self.open):
            raise ValueError('"widths", "rows" and "open" belong to "range_from" and "range_to"')
        if self.widths and self.rows is not None:
            raise ValueError('"widths" and "rows" exclude each other')
        if self.same_as is None and self.returned is None and self.plus:
            raise ValueError('"plus" belongs to "same_as" and "returned"')
        if self.same_as is None and (self.of is None) != (self.returned is None):
            raise ValueError('"of" belongs to "same_as" and "returned", which requires it')
        if self.between is None and self.distribution != "uniform":
            raise ValueError('"distribution" belongs to "between"')
        self._check_distribution()
        if self.one_of is None and (self.weights or self.nulls):
            raise ValueError('"weights" and "nulls" belong to "one_of"')
        if self.weights and (len(self.weights) != len(self.one_of or ()) or not math.fsum(self.weights)):
            raise ValueError('"weights" needs one weight per value of "one_of", and not all of them 0')

    def _check_distribution(self) -> None:
        """Raise ValueError for a parameter that the distribution does not take, or one that is missing."""
        if self.parameter is None:
            if self.distribution == "exponential":
                raise ValueError('"exponential" has a "parameter", as random_exponential of pgbench has')
            return
        if self.distribution not in PARAMETERISED:
            raise ValueError(f'"parameter" belongs to "distribution" {", ".join(PARAMETERISED)}')
        least, most = PARAMETERISED[self.distribution]
        if not least <= self.parameter <= most:
            raise ValueError(f'"parameter" of {self.distribution} is from {least:g} to {most:g}')

    @property
    def _is_range(self) -> bool:
        return self.range_from is not None or self.range_to is not None

    def drawn(self) -> Parameter:
        """Return the parameter of the model."""
        ways: tuple[Parameter | None, ...] = (
            self._end_of(self.range_from, is_lower=False),
            self._end_of(self.range_to, is_lower=True),
            None if self.column is None else self._of_column(self.column),
            None if self.new_key is None else NewKey(self.new_key),
            None if self.same_as is None else SameValue(self.same_as, self.of, self.plus),
            None if self.returned is None else ReturnedValue(self.returned, self.of or "", self.plus),
            None if self.between is None else Between(*self.between, self.distribution, self.parameter),
            None if self.letters is None else Letters(*self.letters),
            None if self.one_of is None else OneOf(tuple(self.one_of), tuple(self.weights), self.nulls),
            Ordinal() if self.ordinal else None,
            Uuid() if self.uuid else None,
        )
        return next((way for way in ways if way is not None), Constant(self.constant))

    def _end_of(self, parameter: int | None, *, is_lower: bool) -> Parameter | None:
        if parameter is None:
            return None
        end = RangeEnd(parameter, self.column or "", tuple(self.widths), self.rows)
        return replace(end, is_lower=is_lower, is_open=self.open)

    def _of_column(self, column: str) -> Parameter:
        return ColumnValue(column) if self.array is None else ArrayOf(column, self.array)


class SeenTable(_Strict):
    """Counts of the original server."""

    calls: int
    time_ms: float
    rows: int
    blocks: int
    wal_records: int

    def seen(self) -> Seen:
        """Return the counts as ``Seen``."""
        return Seen(self.calls, self.time_ms, self.rows, self.blocks, self.wal_records)


_NOTHING = SeenTable(calls=0, time_ms=0, rows=0, blocks=0, wal_records=0)


class StatementTable(_Strict):
    """``[[statement]]``: a statement that is replayed."""

    name: str
    sql: str
    prepared: bool = True
    seen: SeenTable = _NOTHING
    favours: dict[int, Annotated[list[Share], Field(min_length=2, max_length=1001)]] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if any(positions != sorted(positions) for positions in self.favours.values()):
            raise ValueError('"favours" has positions in ascending order, from 0 to 1')
        return self

    @property
    def favoured(self) -> dict[int, tuple[float, ...]]:
        """The positions of favoured values by parameter number."""
        return {number: tuple(positions) for number, positions in self.favours.items()}


class CallTable(_Strict):
    """A call of a transaction."""

    statement: str
    times: Positive = 1.0
    parameters: list[ParameterTable] = Field(default_factory=list)


class TransactionTable(_Strict):
    """``[[transaction]]``: a kind of transaction."""

    weight: Positive
    call: Annotated[list[CallTable], Field(min_length=1)]


class OmittedTable(_Strict):
    """``[[omitted]]``: a statement that is not replayed."""

    sql: str
    why: str
    seen: SeenTable = _NOTHING


class InvariantTable(_Strict):
    """``[[invariant]]``: a query with its expected result before and after a load."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    sql: str
    value: StrictBool | StrictInt | FiniteFloat | StrictStr | None = Field(default=None, alias="is")
    unchanged: bool = False
    no_rows: bool = False

    @model_validator(mode="after")
    def _one_expectation(self) -> Self:
        if (self.value is not None) + self.unchanged + self.no_rows != 1:
            raise ValueError('an invariant has exactly one of "is", "unchanged = true", "no_rows = true"')
        return self

    def invariant(self) -> Invariant:
        """Return the invariant of the model."""
        if self.value is not None:
            return Invariant(self.name, self.sql, Is(self.value))
        return Invariant(self.name, self.sql, Unchanged() if self.unchanged else NoRows())


class EndedTable(_Strict):
    """The database's transactions by their end."""

    committed: Annotated[int, Field(ge=0)]
    rolled_back: Annotated[int, Field(ge=0)]


class WorkloadTable(_Strict):
    """``[workload]``: the workload's origin and properties."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    server_version: str
    cluster: int
    database: str
    protocol: Protocol = "prepared"
    search_path: str = "public"
    seconds: Weight = 0.0
    pauses_s: Annotated[list[Pause], Field(max_length=1000)] = Field(default_factory=list)
    pause_s: Pause | None = None  # in files of earlier versions, instead of pauses_s
    sessions: Annotated[int, Field(ge=1)] | None = None
    ended: EndedTable | None = None
    assumed_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    counted: list[Quantity] = list(QUANTITIES)
    clients: Annotated[int, Field(ge=1)]
    read_only: bool = False
    notes: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_pause(self) -> Self:
        if self.pause_s is not None and self.pauses_s:
            raise ValueError('"pauses_s" replaces "pause_s": give only one of them')
        return self

    @property
    def pauses(self) -> tuple[float, ...]:
        """The pauses of sessions, also of a file with a single one."""
        return tuple(self.pauses_s) if self.pause_s is None else (self.pause_s,)


class WorkloadFile(_Strict):
    """The whole file."""

    workload: WorkloadTable
    statement: Annotated[list[StatementTable], Field(min_length=1)]
    transaction: Annotated[list[TransactionTable], Field(min_length=1)]
    invariant: Annotated[list[InvariantTable], Field(max_length=100)] = Field(default_factory=list)
    omitted: list[OmittedTable] = Field(default_factory=list)
