"""A variant: a named, complete server configuration, ``[SERVER@]NAME[:setting=value,…]``.

A setting is one of PostgreSQL's (``jit``), a sysctl (``vm.swappiness``) or another kernel file
(``/sys/kernel/mm/transparent_hugepage/enabled``), a prefetch control of one CPU (``/dev/cpu/0/msr:0x1a4``),
an environment variable of the server (``env.MALLOC_TOP_PAD_``), the scheduling policy of its processes
(``process.scheduling_policy``), or SQL that changes its schema (``sql``, of scratch servers). Sysctls are
stored by the paths of their files.

A variant can hold any key, because records of others must stay readable. Only keys of a known kind have an
effect; ``require_measurable`` checks which may be used.

    jit, pg_stat_statements.max              a setting of PostgreSQL
    vm.swappiness, /proc/sys/vm/swappiness   a sysctl, stored by the path of its file
    /sys/kernel/mm/transparent_hugepage/…    another kernel file
    /dev/cpu/0/msr:0x1a4                     a register of one CPU
    env.MALLOC_ARENA_MAX                     an environment variable of the server
    process.scheduling_policy                how the kernel schedules the server's processes
    sql                                      statements that change the schema of its copy of the data

Source: PostgreSQL, valid_custom_variable_name and ParseLongOption in src/backend/utils/misc/guc.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from pgdyno.base.errors import DurabilityError, VariantError
from pgdyno.host.kernel_file import display_name, sysctl_path
from pgdyno.host.msr import register_of
from pgdyno.model.variants.durability import ENVIRONMENT, unsafe_settings, why_not_given, why_refused
from pgdyno.model.variants.schema_sql import require_schema_statements, script_of
from pgdyno.postgres.planner.sql_text import statements_in

SCHEDULING_POLICY = "process.scheduling_policy"
SQL = "sql"

_SETTING = re.compile(r"[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)*")
_FILE = re.compile(r"/(proc/sys|proc/irq|sys)(/(?!\.)[A-Za-z0-9_.:@+-]+)+")
_VARIABLE = re.compile(r"env\.[A-Za-z_][A-Za-z0-9_]*")
_SYSCTLS = ("dev.", "fs.", "kernel.", "net.", "vm.")  # no extension of PostgreSQL has one of these names


class KeyKind(Enum):
    """The kind of a key."""

    SETTING = auto()  # of PostgreSQL
    FILE = auto()  # of the kernel, or a CPU register
    VARIABLE = auto()  # of the environment
    PROCESS = auto()  # how the server's program is started
    SCHEMA = auto()  # of the server's copy of the data


def canonical_key(name: str) -> str:
    """Return the canonical form of a key. Idempotent.

    PostgreSQL does not distinguish ``FSYNC`` and ``fsync``, so pgdyno must not either.
    """
    if name.startswith("/"):
        register = register_of(name)
        return name if register is None else register.key
    head, dot, rest = name.partition(".")
    beginning = head.lower() + dot
    if beginning in _SYSCTLS:
        return sysctl_path(beginning + rest)
    return beginning + rest if beginning == ENVIRONMENT else name.lower()


def kind_of_key(key: str) -> KeyKind | None:
    """Return the kind of a key in canonical form; None if it is not a valid key."""
    if _FILE.fullmatch(key) or register_of(key) is not None:
        return KeyKind.FILE
    if key.startswith(ENVIRONMENT):
        return KeyKind.VARIABLE if _VARIABLE.fullmatch(key) else None
    if key == SCHEDULING_POLICY:
        return KeyKind.PROCESS
    if key == SQL:
        return KeyKind.SCHEMA
    return KeyKind.SETTING if _SETTING.fullmatch(key) else None


def why_no_key(key: str) -> str:
    """Return why a key is not valid."""
    if kind_of_key(key.replace("-", "_")) is KeyKind.SETTING:
        return f'PostgreSQL reads "-" as "_": write {key.replace("-", "_")}'
    return (
        "a key is a setting of PostgreSQL, a sysctl, a file below /proc/sys, /proc/irq or /sys, "
        f"a register /dev/cpu/N/msr:0x…, env.NAME, {SCHEDULING_POLICY}, or {SQL}"
    )


_NAME = re.compile(r"[A-Za-z0-9_.+-]+")
_SQL_FILE = ".sql"
_POLICIES = ("other", "batch")  # of sched(7), those that starve no other process


@dataclass(frozen=True)
class Variant:
    """One arm of an experiment. ``server`` None means the experiment's own server.

    Names of PostgreSQL's settings are stored in lower case: the server does not distinguish ``FSYNC`` and
    ``fsync``, so pgdyno must not either.
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    server: str | None = None

    def __post_init__(self) -> None:
        """Convert keys to canonical form. Raises: VariantError if two of them are the same setting."""
        folded = {canonical_key(name): value for name, value in self.settings.items()}
        if len(folded) < len(self.settings):
            raise VariantError(
                f'variant "{self.name}" sets a setting twice',
                detail=f"upper and lower case are the same: {', '.join(self.settings)}",
            )
        object.__setattr__(self, "settings", folded)  # the dataclass is frozen

    @property
    def gucs(self) -> dict[str, str]:
        """The PostgreSQL settings."""
        return self._of_kind(KeyKind.SETTING)

    @property
    def files(self) -> dict[str, str]:
        """The values of kernel files, by path. They affect the whole machine."""
        return self._of_kind(KeyKind.FILE)

    @property
    def environment(self) -> dict[str, str]:
        """The additional environment variables of the server."""
        found = self._of_kind(KeyKind.VARIABLE)
        return {key.removeprefix(ENVIRONMENT): value for key, value in found.items()}

    @property
    def scheduling_policy(self) -> str | None:
        """The scheduling policy of the server; None: the same as pgdyno's."""
        return self.settings.get(SCHEDULING_POLICY)

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL that is run once on its copy of the data."""
        return statements_in(self.settings.get(SQL, ""))

    @property
    def is_durable(self) -> bool:
        """Whether every durability setting has a safe value."""
        return not self.unsafe_settings

    @property
    def unsafe_settings(self) -> tuple[str, ...]:
        """The settings that make this variant non-durable."""
        return unsafe_settings(self.settings)

    def _of_kind(self, kind: KeyKind) -> dict[str, str]:
        return {key: value for key, value in self.settings.items() if kind_of_key(key) is kind}

    def __str__(self) -> str:
        """Return the variant as ``[SERVER@]NAME[:setting=value,…]``."""
        server = f"{self.server}@" if self.server else ""
        texts = {
            key: f"{value};" if key == SQL and value.endswith(_SQL_FILE) else value
            for key, value in self.settings.items()
        }
        settings = ",".join(f"{_written(key)}={_quoted(value)}" for key, value in texts.items())
        return f"{server}{self.name}" + (f":{settings}" if settings else "")


def setting_key(name: str) -> str:
    """Return the canonical form of a key."""
    return canonical_key(name)


def is_guc(key: str) -> bool:
    """Whether a key is a setting of PostgreSQL."""
    return kind_of_key(key) is KeyKind.SETTING


def require_measurable(variants: Iterable[Variant]) -> None:
    """Refuse settings that no server started by pgdyno may have, in any study.

    Kernel files are checked in ``apply/allowed_files.py``.
    Raises: VariantError with the key and the reason.
    """
    for variant in variants:
        for key, value in variant.settings.items():
            if kind_of_key(key) is None:
                raise VariantError(
                    f'variant "{variant.name}" has no valid key "{key}"', detail=why_no_key(key)
                )
            if key == SQL:
                require_schema_statements(variant.name, value)
            reason = _why_not(key, value)
            if reason is not None:
                raise VariantError(
                    f'variant "{variant.name}" may not set {display_name(key)} to "{value}"',
                    detail=reason,
                    hint="leave it out",
                )


def require_durable(variants: tuple[Variant, ...]) -> None:
    """Raise DurabilityError if a variant given on a command line could lose committed data."""
    for variant in variants:
        if variant.unsafe_settings:
            raise DurabilityError(
                f'variant "{variant.name}" is not durable: {", ".join(variant.unsafe_settings)}',
                hint="a variant that may lose data can only be measured from an experiment file "
                "(pgdyno run FILE.toml), on servers that pgdyno creates",
            )


def _why_not(key: str, value: str) -> str | None:
    """Return why a value is refused; None if it is accepted."""
    kind = kind_of_key(key)
    if "\0" in value:
        return "it contains a NUL byte"
    if kind is KeyKind.VARIABLE:
        return why_not_given(key.removeprefix(ENVIRONMENT), value)
    if kind is KeyKind.PROCESS:
        return None if value in _POLICIES else f"the policies are {' and '.join(_POLICIES)}"
    return why_refused(key, value) if kind is KeyKind.SETTING else None


def _written(key: str) -> str:
    """Return the name of a sysctl if it denotes the same file; a few files can only be given by path."""
    name = display_name(key)
    return name if canonical_key(name) == key else key


def _quoted(value: str) -> str:
    """Quote a value that the parser would otherwise split."""
    if value and value == value.strip() and not any(character in value for character in ",'"):
        return value
    return "'" + value.replace("'", "''") + "'"


def parse_variant(text: str, read_sql: Callable[[str], str] | None = None) -> Variant:
    """Parse ``[SERVER@]NAME[:setting=value,…]``; a value with a comma must be in single quotes.

    ``read_sql`` returns the contents of a file of SQL; None: no SQL can be run.
    Raises: VariantError with the part that is invalid or may not be measured; as ``read_sql``.
    """
    head, colon, tail = text.partition(":")
    server, at, name = head.rpartition("@")
    if at and not server:
        raise VariantError(f'variant "{text}" has an empty server before "@"', hint=_GRAMMAR)
    if not _NAME.fullmatch(name):
        raise VariantError(f'variant "{text}" has no valid name', detail=f'found "{name}"', hint=_GRAMMAR)
    settings: dict[str, str] = {}
    if colon and not tail:
        raise VariantError(f'variant "{text}" ends after ":"', hint=_GRAMMAR)
    for part in _split_settings(tail) if tail else ():
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or kind_of_key(canonical_key(key)) is None:
            raise VariantError(f'variant "{text}": "{part}" is not setting=value', hint=_GRAMMAR)
        if canonical_key(key) in settings:
            raise VariantError(f'variant "{text}" sets "{key}" twice')
        settings[canonical_key(key)] = _unquoted(value.strip())
    if SQL in settings:
        settings[SQL] = _script(text, settings[SQL], read_sql)
    variant = Variant(name=name, settings=settings, server=server or None)
    require_measurable([variant])
    return variant


def _script(text: str, given: str, read_sql: Callable[[str], str] | None) -> str:
    """Return the canonical SQL of a file, or as given: a repeated command has the statements themselves.

    Text that ends like the name of a file is written with a final semicolon.
    """
    if read_sql is None:
        raise VariantError(
            f'variant "{text}" cannot run SQL here',
            hint="pgdyno compare, bench and experiment files accept sql: they measure copies of the data",
        )
    return script_of([read_sql(given) if given.endswith(_SQL_FILE) else given])


_GRAMMAR = "write [SERVER@]NAME[:setting=value,…], for example big:shared_buffers=4GB,vm.swappiness=1"


def _split_settings(text: str) -> list[str]:
    """Split at commas that are not inside single quotes."""
    parts, current, is_quoted = [], "", False
    for character in text:
        if character == "'":
            is_quoted = not is_quoted
        if character == "," and not is_quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    if is_quoted:
        raise VariantError(f'unterminated quote in "{text}"', hint=_GRAMMAR)
    return [*parts, current]


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value
