"""A variant: a named, complete configuration of a server, written ``[SERVER@]NAME[:setting=value,…]``.

A setting is PostgreSQL's (``jit``), a sysctl (``vm.swappiness``) or another file of the kernel
(``/sys/kernel/mm/transparent_hugepage/enabled``), a prefetch control of one CPU (``/dev/cpu/0/msr:0x1a4``),
or an environment variable of the server (``env.MALLOC_TOP_PAD_``). Sysctls are kept by the paths of their
files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.model.durability import unsafe_settings
from pgdyno.model.errors import VariantError
from pgdyno.model.kernel_file import display_name, sysctl_path
from pgdyno.model.msr import register_of

_NAME = re.compile(r"^[A-Za-z0-9_.+-]+$")
_SETTING = re.compile(r"^[A-Za-z_][A-Za-z0-9_.]*$")
_FILE = re.compile(r"^/(proc/sys|proc/irq|sys)(/(?!\.)[A-Za-z0-9_.:-]+)+$")
_SYSCTLS = ("dev.", "fs.", "kernel.", "net.", "vm.")  # no extension of PostgreSQL has one of these names
_ENVIRONMENT = "env."


@dataclass(frozen=True)
class Variant:
    """One arm of an experiment. ``server`` None means the experiment's own server.

    Names of PostgreSQL's settings are in lower case, however they were written: the server does not tell
    ``FSYNC`` from ``fsync``, so that nothing here may either.
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    server: str | None = None

    def __post_init__(self) -> None:
        """Fold the names of settings. Raises: VariantError if two of them are the same setting."""
        folded = {setting_key(name): value for name, value in self.settings.items()}
        if len(folded) < len(self.settings):
            raise VariantError(
                f'variant "{self.name}" sets a setting twice',
                detail=f"upper and lower case are the same: {', '.join(self.settings)}",
            )
        object.__setattr__(self, "settings", folded)  # the way of a frozen dataclass

    @property
    def gucs(self) -> dict[str, str]:
        """The settings that are PostgreSQL's."""
        return {key: value for key, value in self.settings.items() if is_guc(key)}

    @property
    def files(self) -> dict[str, str]:
        """What the kernel's files are to hold, by path. They concern the whole machine."""
        return {key: value for key, value in self.settings.items() if key.startswith("/")}

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that the server is started with, besides its usual ones."""
        return {
            key.removeprefix(_ENVIRONMENT): value
            for key, value in self.settings.items()
            if key.startswith(_ENVIRONMENT)
        }

    @property
    def is_durable(self) -> bool:
        """Whether every durability setting has a safe value."""
        return not self.unsafe_settings

    @property
    def unsafe_settings(self) -> tuple[str, ...]:
        """The settings that make this variant not durable."""
        return unsafe_settings(self.settings)

    def __str__(self) -> str:
        """Return the variant in its own grammar."""
        server = f"{self.server}@" if self.server else ""
        settings = ",".join(f"{display_name(key)}={_quoted(value)}" for key, value in self.settings.items())
        return f"{server}{self.name}" + (f":{settings}" if settings else "")


def setting_key(name: str) -> str:
    """Return the key of a setting: folded if it is PostgreSQL's, a path if it is a sysctl's."""
    if name.startswith(("/", _ENVIRONMENT)):
        return name
    return sysctl_path(name) if name.startswith(_SYSCTLS) else name.lower()


def is_guc(key: str) -> bool:
    """Whether a key is a setting of PostgreSQL."""
    return not key.startswith(("/", _ENVIRONMENT))


def _quoted(value: str) -> str:
    """Quote a value that the grammar would otherwise split."""
    if value and not any(character in value for character in ",'"):
        return value
    return "'" + value.replace("'", "''") + "'"


def parse_variant(text: str) -> Variant:
    """Parse ``[SERVER@]NAME[:setting=value,…]``; a value with a comma is written in single quotes.

    Raises: VariantError naming the part that does not fit.
    """
    head, colon, tail = text.partition(":")
    server, at, name = head.rpartition("@")
    if at and not server:
        raise VariantError(f'variant "{text}" has an empty server before "@"', hint=_GRAMMAR)
    if not _NAME.match(name):
        raise VariantError(f'variant "{text}" has no valid name', detail=f'found "{name}"', hint=_GRAMMAR)
    settings: dict[str, str] = {}
    if colon and not tail:
        raise VariantError(f'variant "{text}" ends after ":"', hint=_GRAMMAR)
    for part in _split_settings(tail) if tail else ():
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not (_SETTING.match(key) or _FILE.match(key) or register_of(key)):
            raise VariantError(f'variant "{text}": "{part}" is not setting=value', hint=_GRAMMAR)
        if setting_key(key) in settings:
            raise VariantError(f'variant "{text}" sets "{key}" twice')
        settings[setting_key(key)] = _unquoted(value.strip())
    return Variant(name=name, settings=settings, server=server or None)


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
