"""PostgreSQL settings as the server describes them, and values with units.

A ``Guc`` is one row of ``pg_settings``. Values are passed as PostgreSQL prints them (``8GB``, ``200ms``,
``on``). Only ``normalise`` converts such a text into the server's base unit, by the rules of "Numeric with
Unit" in the PostgreSQL manual, chapter Server Configuration.

Each row's form is checked, because the peer may not be a PostgreSQL server and all readers of settings rely
on the form. Values are checked for PostgreSQL's own settings only: extensions format numbers freely.
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
_LARGEST_EXPONENT = 308  # of a double; the server computes in doubles
_SHOWN_CHARACTERS = 40  # arbitrary; a number may have thousands of digits
_SET_IN_SESSION = "session"
_TRUE = ("on", "true", "yes", "1")
_FALSE = ("off", "false", "no", "0")
_COLUMNS = 14
_NAME = re.compile(r"[A-Za-z_][\w.$ -]{0,199}")  # PostgreSQL's are shorter than 64 characters
_VALUES = {
    "bool": re.compile(r"on|off"),
    "integer": re.compile(r"-?[0-9]{1,19}"),  # 64 bits; file modes are octal
    "real": re.compile(r"-?[0-9]{1,309}(\.[0-9]+)?(e[+-]?[0-9]{1,3})?"),
    "enum": re.compile(r"[ -~]{0,200}"),
    "string": re.compile(r".*", re.DOTALL),
}
_CONTEXTS = {"internal", "postmaster", "sighup", "superuser-backend", "backend", "superuser", "user"}
_KNOWN_UNIT = re.compile(rf"[0-9]{{0,9}}({'|'.join((*_MEMORY_BYTES, *_TIME_US))})")
_POSITIVE = {"block_size", "wal_block_size", "segment_size", "wal_segment_size"}
"""Sizes used as divisors; PostgreSQL's are never 0."""


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
        """Return the setting as new sessions have it, ignoring a SET in this session."""
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
                detail=f"this build supports: {', '.join(self.enumvals)}",
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
"""Selects the rows that ``guc_of`` reads; a condition may be appended."""
RESET_SESSION_SETTINGS: LiteralString = """
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
"""Resets the session's settings until the transaction ends: pg_settings then shows the server's own sources.

Parameters: the settings that pgdyno itself sets; the backend's process id as known to libpq (behind a pooler
it differs, and then, as with 0, all session settings are reset); the shortest acceptable timeout in ms. A
timeout with a shorter reset value is kept, and so is the encoding, which this client relies on.
"""


def guc_of(row: tuple[Any, ...]) -> Guc:
    """Return the setting in one row of ``SETTINGS_QUERY``, secrets included.

    Raises: ServerError for a row without the form of PostgreSQL's.
    """
    check_row(row)
    name, setting, unit, vartype, context, source, boot_val, reset_val, *rest = row
    min_val, max_val, enumvals, sourcefile, sourceline, pending_restart = rest
    return Guc(
        name=name,
        setting=setting or "",  # NULL for some string settings of extensions
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
    Raises: SettingError for text that is not a number, or for an incompatible unit.
    """
    match = _NUMBER.fullmatch(value)
    if match is None:
        raise SettingError(f'invalid value for parameter "{name}": "{value}"', detail="a number is required")
    try:
        number = Decimal(int(match[1], 16)) if "x" in match[1].lower() else Decimal(match[1])
    except InvalidOperation as error:
        raise SettingError(f'invalid value for parameter "{name}": "{value}"') from error
    if not number:
        number = Decimal(0)  # 0e999999 would be printed with all its zeros
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
    """Return a number from the server; None if it is missing, not a number, or NaN."""
    try:
        number = Decimal(text) if text is not None else None
    except InvalidOperation:
        return None
    return None if number is None or number.is_nan() else number


def _unit_scale(unit: str | None) -> tuple[str, int, dict[str, int] | None]:
    """Split ``8kB`` into base unit, factor and the table of compatible units (None: not a known unit)."""
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
    """Print bytes with the largest unit that divides them, as PostgreSQL does: ``8GB``, ``1536MB``."""
    for name in ("TB", "GB", "MB", "kB"):
        if count and count % _MEMORY_BYTES[name] == 0:
            return f"{count // _MEMORY_BYTES[name]}{name}"
    return f"{count}B"


def _plain(number: Decimal) -> str:
    """Print a number without exponent and without trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def check_row(row: tuple[Any, ...]) -> None:
    """Check that a row of ``SETTINGS_QUERY`` has the form of PostgreSQL's. Raises: ServerError."""
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


def _invalid(what: str, value: object) -> ServerError:
    return ServerError(
        f"the server reports an invalid value for {what}: {str(value)[:200]!a}",
        detail="PostgreSQL reports its settings in a different form",
        hint="connect to the server directly if there is a proxy in between",
    )
