"""Arguments of functions that do not take every value of their type: fields, zones, sequences, settings.

pg_stat_statements has no constants. A field or time zone is replaced by one that is always valid, with a
note. A sequence or a setting is known if the database has only one that can be meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from pgdyno.model.experiments.captured import Between, ColumnValue, Constant, Parameter
from pgdyno.postgres.catalogued_tables import Column, Policy
from pgdyno.workload.capture.name_resolution import column_of, columns_of
from pgdyno.workload.capture.syntax import tree, within_wrapping

_OF_DAYS = ("date", "timestamp", "interval")  # beginnings of types
_VALID: Mapping[tuple[type[exp.Expr], str], tuple[str, str]] = {
    (exp.AtTimeZone, "zone"): ("time zone", "UTC"),
    (exp.Encode, "charset"): ("format", "escape"),
    (exp.Decode, "charset"): ("format", "escape"),
    (exp.RegexpReplace, "position"): ("flags", "i"),  # sqlglot does not know that it has other types
}
"""Arguments by node and key, each with a name, and a value that is always valid."""
_SLEEP = "pg_sleep"  # its execution time shows its argument
_LOCKS = ("pg_advisory_", "pg_try_advisory_")
_LOCK = Between(1, 1_000_000_000)  # arbitrary: large enough that equal values are rare
_READING, _SETTING = "current_setting", "set_config"


@dataclass(frozen=True)
class NamedObjects:
    """The objects of a database that a call may name.

    ``sequences`` are quoted for SQL, each with the path of the column that owns it, or None. ``settings`` are
    those that policies of row-level security read, each with the path of the column that is compared with it,
    or None. ``secured`` are the tables of these policies, ``locked`` those of policies that were not read.
    """

    sequences: Mapping[str, str | None] = field(default_factory=dict)
    settings: Mapping[str, str | None] = field(default_factory=dict)
    secured: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()


NOTHING_NAMED = NamedObjects()


@dataclass(frozen=True)
class Argument:
    """How to draw an argument, with a note on an assumption; None: unknown, for the reason in the note."""

    drawn: Parameter | None
    note: str = ""


def with_policies(named: NamedObjects, policies: Sequence[Policy], columns: Sequence[Column]) -> NamedObjects:
    """Return named objects with the settings that policies read."""
    settings: dict[str, str | None] = {}
    secured: dict[str, None] = {}
    for policy in policies:
        for setting, column in _settings(policy, columns):
            settings[setting] = settings.get(setting) or column
            secured[f"{policy.schema}.{policy.table}"] = None
    locked = dict.fromkeys(f"{one.schema}.{one.table}" for one in policies if not one.condition)
    return replace(named, settings=settings, secured=tuple(secured), locked=tuple(locked))


def _settings(policy: Policy, columns: Sequence[Column]) -> Iterator[tuple[str, str | None]]:
    """Yield the settings that a policy reads, each with the path of the column compared with it, or None."""
    table = exp.table_(policy.table, db=policy.schema, quoted=True).sql("postgres")
    parsed = tree(f"SELECT FROM {table} WHERE {policy.condition}")
    for call in () if parsed is None else parsed.find_all(exp.Anonymous):
        name = within_wrapping(call.expressions[0]) if call.expressions else None
        if call.name.lower() != _READING or not isinstance(name, exp.Literal):
            continue
        compared = call.find_ancestor(exp.EQ)
        sides = () if compared is None else (compared.this, compared.expression)
        found = [one for side in sides if (one := column_of(within_wrapping(side), columns)) is not None]
        yield name.name, found[0].path if found else None


def argument_of(
    node: exp.Expression, number: int, named: NamedObjects, columns: Sequence[Column], seconds: float
) -> Argument | None:
    """Return how to draw a parameter that is such an argument; None for other parameters.

    ``seconds`` is the mean time of a call.
    """
    parent = node.parent
    if isinstance(parent, exp.Extract) and node.arg_key == "this":
        return _field(number, parent.expression, columns)
    if isinstance(parent, exp.TimestampTrunc | exp.DateTrunc) and node.arg_key == "unit":
        return _assumed(number, "field", "day")
    if isinstance(parent, exp.Anonymous):
        return _of_call(node, number, parent, named, columns) or _simple(parent.name.lower(), seconds)
    found = None if parent is None else _VALID.get((type(parent), node.arg_key or ""))
    return None if found is None else _assumed(number, *found)


def _assumed(number: int, name: str, value: str) -> Argument:
    return Argument(Constant(value), f"{name} ${number} is unknown: {value} is used")


def _field(number: int, of: exp.Expression, columns: Sequence[Column]) -> Argument:
    """Return a field that the type has: all have an epoch, but times have no day."""
    column = column_of(within_wrapping(of), columns)
    has_days = column is not None and column.type.startswith(_OF_DAYS)
    return _assumed(number, "field", "day" if has_days else "epoch")


def _simple(function: str, seconds: float) -> Argument | None:
    """Return the argument of pg_sleep or of an advisory lock function."""
    if function == _SLEEP:
        return Argument(Constant(f"{seconds:.6f}"))
    return Argument(_LOCK) if function.startswith(_LOCKS) else None


def _of_call(
    node: exp.Expression, number: int, call: exp.Anonymous, named: NamedObjects, columns: Sequence[Column]
) -> Argument | None:
    found: Argument | None = None
    match call.name.lower(), call.expressions.index(node):
        case "extract" | "date_part", 0 if len(call.expressions) > 1:
            found = _field(number, call.expressions[1], columns)
        case "date_trunc", 0:
            found = _assumed(number, "field", "day")
        case "timezone", 0:
            found = _assumed(number, "time zone", "UTC")
        case "nextval" | "currval", 0:
            found = _sequence(node, number, named, columns)
        case (("current_setting" | "set_config"), 0):
            found = _setting(call, number, named)
        case "set_config", 1:
            found = _set_value(call, number, named)
        case "set_config", 2:  # for the session: later transactions may read it, too
            found = Argument(Constant("false"), f"is_local ${number} is unknown: false is used")
    return found


def _sequence(node: exp.Expression, number: int, named: NamedObjects, columns: Sequence[Column]) -> Argument:
    """Return the sequence of the table that a row is inserted into, or the only one of the database."""
    insert = node.find_ancestor(exp.Insert)
    into = None if insert is None else insert.this
    table = into.this if isinstance(into, exp.Schema) else into
    own = {one.path for one in columns_of(table, columns)} if isinstance(table, exp.Table) else set()
    of_table = [name for name, column in named.sequences.items() if column in own]
    found = of_table or list(named.sequences)
    if len(found) != 1:
        several = f": it may be any of {len(found)}" if found else ""
        return Argument(None, f"the sequence ${number} is unknown{several}")
    whole = "table" if of_table else "database"
    note = f"sequence ${number} is assumed to be {found[0]}, the only one of the {whole}"
    return Argument(Constant(found[0]), note)


def _setting(call: exp.Anonymous, number: int, named: NamedObjects) -> Argument:
    """Return the only setting that policies read, for the only call that names a setting."""
    function = call.name.lower()
    calls = [one for one in call.root().find_all(exp.Anonymous) if one.name.lower() == function]
    if len(named.settings) != 1 or len(calls) != 1:
        does = "sets" if function == _SETTING else "reads"
        return Argument(None, f"the name of the setting ${number} that {function} {does} is unknown")
    [name] = named.settings
    return Argument(
        Constant(name), f"setting ${number} is assumed to be {name}, the only one that policies read"
    )


def _set_value(call: exp.Anonymous, number: int, named: NamedObjects) -> Argument:
    """Return the value of a setting: one of the column that policies compare with it."""
    literal = within_wrapping(call.expressions[0])
    name = literal.name if isinstance(literal, exp.Literal) else next(iter(named.settings), None)
    column = None if name is None else named.settings.get(name)
    if column is None:
        return Argument(None, f"the values ${number} of the setting are unknown")
    return Argument(ColumnValue(column), f"setting values ${number} are those of {column}, as in policies")
