"""A variant: a named, complete server configuration, ``[SERVER@]NAME[:setting=value,…]``.

A setting is one of PostgreSQL's (``jit``), a sysctl (``vm.swappiness``) or another kernel file
(``/sys/kernel/mm/transparent_hugepage/enabled``), a prefetch control of one CPU (``/dev/cpu/0/msr:0x1a4``),
an environment variable of the server (``env.MALLOC_TOP_PAD_``), or the scheduling policy of its processes
(``process.scheduling_policy``). Sysctls are stored by the paths of their files; see ``variant_key.py``.

A variant can hold any key, because records of others must stay readable. Only keys of a known kind have an
effect; ``require_measurable`` checks which may be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pgdyno.base.errors import DurabilityError, VariantError
from pgdyno.host.kernel_file import display_name
from pgdyno.model.variants.durability import unsafe_settings
from pgdyno.model.variants.refused_settings import why_refused
from pgdyno.model.variants.server_environment import why_not_given
from pgdyno.model.variants.variant_key import (
    ENVIRONMENT,
    SCHEDULING_POLICY,
    KeyKind,
    canonical_key,
    kind_of_key,
    why_no_key,
)

_NAME = re.compile(r"[A-Za-z0-9_.+-]+")
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
        settings = ",".join(f"{_written(key)}={_quoted(value)}" for key, value in self.settings.items())
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


def parse_variant(text: str) -> Variant:
    """Parse ``[SERVER@]NAME[:setting=value,…]``; a value with a comma must be in single quotes.

    Raises: VariantError with the part that is invalid or may not be measured.
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
    variant = Variant(name=name, settings=settings, server=server or None)
    require_measurable([variant])
    return variant


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
