"""A study: the question of an experiment, its variants and workloads, before it is run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant, require_measurable, setting_key

SERVER_FACTOR = "server"
_MOST_VARIANTS = 1_000  # arbitrary: one round of so many takes hours


@dataclass(frozen=True)
class Study:
    """The input of ``pgdyno run``: bundled in ``studies/bundled/``, a TOML file, or made by a command.

    All variants are compared with the first, the baseline. An adaptive study has only this variant; each
    round measures those cells of a grid that locate the knees soonest.
    """

    name: str
    question: str
    variants: tuple[Variant, ...]
    workloads: tuple[str, ...]
    design: Design = field(default_factory=Design)
    notes: tuple[str, ...] = ()
    is_adaptive: bool = False

    @property
    def baseline(self) -> str:
        """The name of the baseline variant."""
        return self.variants[0].name


def cross(factors: Mapping[str, Sequence[str]], base: Variant | None = None) -> tuple[Variant, ...]:
    """Return one variant per combination of the factors' values; the first values are the baseline.

    The factor ``server`` varies the PostgreSQL installation, every other factor a setting.
    Raises: UsageError for a factor without values and for too many combinations;
    VariantError for settings that may not be measured.
    """
    for name, values in factors.items():
        if not values:
            raise UsageError(f'factor "{name}" has no values', hint=f"write --factor {name}=first,second")
    count = math.prod(map(len, factors.values()))
    if count > _MOST_VARIANTS:
        raise UsageError(
            f"the factors have {count} combinations",
            detail=f"at most {_MOST_VARIANTS} variants can be compared",
            hint="leave out values, or measure one factor after the other",
        )
    combinations = itertools.product(
        *([(name, value) for value in values] for name, values in factors.items())
    )
    variants = tuple(_varied(base or Variant(""), dict(pairs)) for pairs in combinations)
    require_measurable(variants)
    return variants


def on_servers(variants: Sequence[Variant], servers: Sequence[str]) -> tuple[Variant, ...]:
    """Return every variant on every server; the first one on the first server is the baseline."""
    return tuple(replace(variant, server=server) for server in servers for variant in variants)


def _varied(base: Variant, levels: Mapping[str, str]) -> Variant:
    settings = {name: value for name, value in levels.items() if name != SERVER_FACTOR}
    return Variant(
        "-".join(_level_name(name, value) for name, value in levels.items()),
        _without(base.settings, settings) | settings,
        levels.get(SERVER_FACTOR, base.server),
    )


def _level_name(factor: str, value: str) -> str:
    """Return ``source-17`` for a server, ``jit.on`` for a setting."""
    return _short(value) if factor == SERVER_FACTOR else f"{factor}.{_short(value)}"


def _short(value: str) -> str:
    """Return the last component of a path for use in a name; for a bin directory, that of its parent."""
    if "/" not in value:
        return value
    place = PurePosixPath(value)
    return (place.parent if place.name == "bin" else place).name


def _without(settings: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that ``others`` do not set, comparing canonical names."""
    replaced = {setting_key(name) for name in others}
    return {name: value for name, value in settings.items() if name not in replaced}


def unique_names(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return the variants with unique names: prefixed by server if servers differ, else numbered.

    An A/A comparison names the same variant twice; a comparison of two builds may call both "default".
    """
    names = [variant.name for variant in variants]
    if len(set(names)) < len(names) and len({variant.server for variant in variants}) > 1:
        names = [_with_server(variant) for variant in variants]
    numbers = [names[:position].count(name) + 1 for position, name in enumerate(names)]
    return tuple(
        replace(variant, name=name if number == 1 else f"{name}-{number}")
        for variant, name, number in zip(variants, names, numbers, strict=True)
    )


def _with_server(variant: Variant) -> str:
    """Return ``debian-17-default`` for ``debian-17@default``, ``pg18-default`` for ``/opt/pg18@default``."""
    if variant.server is None:
        return variant.name
    return f"{_short(variant.server)}-{variant.name}"
