"""PostgreSQL settings as the server describes them, and values with units.

A ``Guc`` is one row of ``pg_settings``. Values travel as the text PostgreSQL itself would print
(``8GB``, ``200ms``, ``on``); ``normalise`` is the only place that turns such a text into the server's base
unit, by the rules of "Numeric with Unit" in the PostgreSQL manual, chapter Server Configuration.

The form of a row is checked: a server may be none, and everything that reads settings relies on it.
Extensions show their numbers as they like; the form of values is checked for PostgreSQL's own settings.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, LiteralString

from pgdyno.base.errors import ServerError, SettingError

_MEMORY_BYTES = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_TIME_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_NUMBER = re.compile(
    r"\s*+([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+))\s*+([A-Za-z]*+)\s*+"
)
_UNIT = re.compile(r"([1-9][0-9]{0,5})?([A-Za-z]+)")
_LARGEST_EXPONENT = 308  # of a double, in which the server computes
_SHOWN_CHARACTERS = 40  # arbitrary: of a number that may have thousands
_SET_IN_SESSION = "session"
_TRUE = ("on", "true", "yes", "1")
_FALSE = ("off", "false", "no", "0")
_COLUMNS = 14
_NAME = re.compile(r"[A-Za-z_][\w.$ -]{0,199}")  # PostgreSQL's are shorter than 64 characters
_VALUES = {
    "bool": re.compile(r"on|off"),
    "integer": re.compile(r"-?[0-9]{1,19}"),  # 64 bits; modes of files are octal
    "real": re.compile(r"-?[0-9]{1,309}(\.[0-9]+)?(e[+-]?[0-9]{1,3})?"),
    "enum": re.compile(r"[ -~]{0,200}"),
    "string": re.compile(r".*", re.DOTALL),
}
_CONTEXTS = {"internal", "postmaster", "sighup", "superuser-backend", "backend", "superuser", "user"}
_KNOWN_UNIT = re.compile(rf"[0-9]{{0,9}}({'|'.join((*_MEMORY_BYTES, *_TIME_US))})")
_POSITIVE = {"block_size", "wal_block_size", "segment_size", "wal_segment_size"}
"""Sizes by which others are divided; PostgreSQL's are never 0."""


@dataclass(frozen=True)
class Guc:
    """One setting as ``pg_settings`` shows it; numbers are in ``unit`` (e.g. ``8kB``, ``ms``), as text."""

    name: str
    setting: str
    unit: str | None
    vartype: str
    context: str
    source: str
    boot_val: str | None
    reset_val: str | None
    min_val: str | None = None
    max_val: str | None = None
    enumvals: tuple[str, ...] = ()
    sourcefile: str | None = None
    sourceline: int | None = None
    pending_restart: bool = False

    @property
    def needs_restart(self) -> bool:
        """Whether a change takes effect only when the server starts."""
        return self.context == "postmaster"

    @property
    def is_read_only(self) -> bool:
        """Whether no configuration can change it (compiled in or chosen by initdb)."""
        return self.context == "internal"

    def of_new_sessions(self) -> Guc:
        """Return the setting as new sessions have it: a SET in this one does not count."""
        if self.source != _SET_IN_SESSION:
            return self
        return replace(self, setting=self.reset_val or "")

    def check(self, value: str) -> str:
        """Return ``value`` in the server's base unit, as ``pg_settings.setting`` would show it.

        Raises: SettingError if the server would not accept it; nothing is clamped.
        """
        if self.vartype == "bool":
            return self._check_bool(value)
        if self.vartype == "enum":
            return self._check_enum(value)
        if self.vartype in ("integer", "real"):
            return self._check_number(value)
        return value

    def equals(self, value: str) -> bool:
        """Whether ``value`` means the same as the current setting."""
        return self.check(value) == self.check(self.setting)

    def display(self, value: str | None = None) -> str:
        """Return a value of this setting (default: the current one) with a readable unit."""
        base = self.setting if value is None else self.check(value)
        return format_with_unit(base, self.unit)

    def _check_bool(self, value: str) -> str:
        text = value.strip().lower()
        if text in _TRUE:
            return "on"
        if text in _FALSE:
            return "off"
        raise SettingError(
            f'parameter "{self.name}" requires a Boolean value, got "{value}"', hint="use on or off"
        )

    def _check_enum(self, value: str) -> str:
        text = value.strip().lower()
        aliases = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
        text = text if text in self.enumvals else aliases.get(text, text)
        if text not in self.enumvals:
            raise SettingError(
                f'invalid value for parameter "{self.name}": "{value}"',
                detail=f"this server's build knows: {', '.join(self.enumvals)}",
            )
        return text

    def _check_number(self, value: str) -> str:
        number = normalise(value, self.unit, name=self.name)
        if self.vartype == "integer":
            number = number.to_integral_value(rounding=ROUND_HALF_EVEN)
        low, high = _bound(self.min_val), _bound(self.max_val)
        if (low is not None and number < low) or (high is not None and number > high):
            unit = self.unit or ""
            raise SettingError(
                f'{value} is outside the valid range for parameter "{self.name}"',
                detail=f"the server accepts {low} {unit} .. {high} {unit}".replace(" ..", " ..").rstrip(),
            )
        return _plain(number)


SETTINGS_QUERY: LiteralString = """
    SELECT name, setting, unit, vartype, context, source, boot_val, reset_val, min_val, max_val,
           enumvals, sourcefile, sourceline, pending_restart
      FROM pg_catalog.pg_settings"""
TAKE_BACK: LiteralString = """
    SELECT pg_catalog.count(pg_catalog.set_config(name, NULL, true))
      FROM pg_catalog.pg_settings
     WHERE source OPERATOR(pg_catalog.=) 'session'
       AND (pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.text[])
            OR pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.<>) %s)
       AND (context OPERATOR(pg_catalog.=) 'user' OR pg_catalog.current_setting('is_superuser')
                                                     OPERATOR(pg_catalog.=) 'on')
       AND NOT name OPERATOR(pg_catalog.=) ANY (
           '{client_encoding,transaction_isolation,transaction_read_only,transaction_deferrable}'
           ::pg_catalog.text[])
       AND CASE WHEN name OPERATOR(pg_catalog.~)
                     '^(statement|transaction|idle_in_transaction_session)_timeout$'
                THEN reset_val OPERATOR(pg_catalog.=) '0'
                     OR reset_val::pg_catalog.int4 OPERATOR(pg_catalog.>=) %s
                ELSE true END"""
"""Takes back, until the transaction ends, what is set in the session: pg_settings then shows where the server
has it from. Parameters: settings that are pgdyno's own; its process id as libpq knows it (behind a pooler
that is another one, and all counts, as it does with 0); the shortest limit in ms that may end the reading:
shorter ones stay, and so does the encoding, as this client reads it."""
"""Asks for the rows that ``guc_of`` reads; a condition may follow."""


def guc_of(row: tuple[Any, ...]) -> Guc:
    """Return the setting in one row of ``SETTINGS_QUERY``, secrets included.
    Raises: ServerError for a row that is none of PostgreSQL's: what reads settings relies on their form.
    """
    check_row(row)
    name, setting, unit, vartype, context, source, boot_val, reset_val, *rest = row
    min_val, max_val, enumvals, sourcefile, sourceline, pending_restart = rest
    return Guc(
        name=name,
        setting=setting or "",  # NULL for some texts of extensions
        unit=unit,
        vartype=vartype,
        context=context,
        source=source,
        boot_val=boot_val,
        reset_val=reset_val,
        min_val=min_val,
        max_val=max_val,
        enumvals=tuple(enumvals or ()),
        sourcefile=sourcefile,
        sourceline=sourceline,
        pending_restart=pending_restart,
    )


def normalise(value: str, unit: str | None, *, name: str = "value") -> Decimal:
    """Convert a value as users write it into ``unit``.

    Units: ``unit`` as in ``pg_settings.unit`` (``8kB``, ``MB``, ``ms``, …), None for a bare number.
    Raises: SettingError for text that is not a number, or a unit of another kind.
    """
    match = _NUMBER.fullmatch(value)
    if match is None:
        raise SettingError(f'invalid value for parameter "{name}": "{value}"', detail="a number is required")
    try:
        number = Decimal(int(match[1], 16)) if "x" in match[1].lower() else Decimal(match[1])
    except InvalidOperation as error:
        raise SettingError(f'invalid value for parameter "{name}": "{value}"') from error
    if not number:
        number = Decimal(0)  # of 0e999999 the exponent would be written out
    if not number.is_finite() or abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise SettingError(
            f'invalid value for parameter "{name}": "{value[:_SHOWN_CHARACTERS]}"',
            detail="the number is out of range",
        )
    suffix = match[2]
    if not suffix:
        return number
    base, factor, scale = _unit_scale(unit)
    if scale is None or suffix not in scale:
        known = ", ".join(f'"{u}"' for u in (scale or {}))
        raise SettingError(
            f'invalid value for parameter "{name}": "{value}"',
            detail=f"valid units for this parameter are {known}" if known else "this parameter has no unit",
        )
    return number * scale[suffix] / (factor * (scale[base]))


def _bound(text: str | None) -> Decimal | None:
    """Return a number as the server shows it; None if it shows none that can be compared."""
    try:
        number = Decimal(text) if text is not None else None
    except InvalidOperation:
        return None
    return None if number is None or number.is_nan() else number


def _unit_scale(unit: str | None) -> tuple[str, int, dict[str, int] | None]:
    """Split ``8kB`` into base unit, factor and the table of units of the same kind."""
    if not unit:
        return "", 1, None
    match = _UNIT.fullmatch(unit)
    if match is None:
        return "", 1, None
    factor = int(match[1] or 1)
    for table in (_MEMORY_BYTES, _TIME_US):
        if match[2] in table:
            return match[2], factor, table
    return "", 1, None


def bytes_of(setting: str, unit: str | None) -> int:
    """Return a memory setting in bytes. Raises: SettingError if ``unit`` is not a unit of memory."""
    base, factor, table = _unit_scale(unit)
    if table is not _MEMORY_BYTES:
        raise SettingError(f'"{setting}" in unit {unit!r} is not an amount of memory')
    return int(normalise(setting, unit) * factor * table[base])


def format_with_unit(setting: str, unit: str | None) -> str:
    """Print a base-unit number with the largest unit that divides it, as PostgreSQL's SHOW does."""
    base, factor, table = _unit_scale(unit)
    if table is None:
        return setting
    number = _bound(setting)
    if number is None or not number.is_finite() or abs(number.adjusted()) > _LARGEST_EXPONENT:
        return setting
    if number <= 0 or number != number.to_integral_value():
        return setting if number <= 0 else f"{_plain(number * factor)}{base}"
    amount = int(number) * factor * table[base]
    for name, size in sorted(table.items(), key=lambda item: -item[1]):
        if amount % size == 0:
            return f"{amount // size}{name}"
    return f"{setting}{base}"


def format_bytes(count: int) -> str:
    """Print bytes as PostgreSQL writes memory: the largest unit that divides, ``8GB``, ``1536MB``."""
    for name in ("TB", "GB", "MB", "kB"):
        if count and count % _MEMORY_BYTES[name] == 0:
            return f"{count // _MEMORY_BYTES[name]}{name}"
    return f"{count}B"


def _plain(number: Decimal) -> str:
    """Print a Decimal without exponent and without trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def check_row(row: tuple[Any, ...]) -> None:
    """Raise ServerError unless a row of ``SETTINGS_QUERY`` has the form of PostgreSQL's."""
    name = row[0] if row else None
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise _invalid("the name of a setting", name)
    if len(row) != _COLUMNS:
        raise _invalid(f'the row of "{name}"', row)
    *texts, enumvals, sourcefile, line, pending = row
    if not all(text is None or isinstance(text, str) for text in (*texts, sourcefile)):
        raise _invalid(f'"{name}"', row)
    if not (enumvals is None or (isinstance(enumvals, list) and all(isinstance(v, str) for v in enumvals))):
        raise _invalid(f'the values of "{name}"', enumvals)
    if not (isinstance(line, int | None) and isinstance(pending, bool)):
        raise _invalid(f'the place of "{name}"', (line, pending))
    _check_texts(name, *texts[1:])


def _check_texts(
    name: str,
    setting: str | None,
    unit: str | None,
    vartype: str | None,
    context: str | None,
    source: str | None,
    *values: str | None,
) -> None:
    if vartype not in _VALUES:
        raise _invalid(f'the type of "{name}"', vartype)
    if context not in _CONTEXTS or source is None:
        raise _invalid(f'the context of "{name}"', (context, source))
    if unit is not None and not _KNOWN_UNIT.fullmatch(unit):
        raise _invalid(f'the unit of "{name}"', unit)
    if "." in name:
        return
    for value in (setting or "", *(value for value in values if value is not None)):
        if not _is_valid(name, vartype, value):
            raise _invalid(f'"{name}"', value)


def _is_valid(name: str, vartype: str, value: str) -> bool:
    if not _VALUES[vartype].fullmatch(value):
        return False
    if vartype == "real":
        return math.isfinite(float(value))
    return name not in _POSITIVE or int(value) > 0


def _invalid(what: str, told: object) -> ServerError:
    return ServerError(
        f"the server gives an invalid value for {what}: {str(told)[:200]!a}",
        detail="PostgreSQL shows its settings in another form",
        hint="connect to the server itself if there is a proxy between",
    )
