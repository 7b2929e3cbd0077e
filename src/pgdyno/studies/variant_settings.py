"""Checks the settings of a bundled study's variants: unsafe ones, and ones unknown to the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.durability import unsafe_settings
from pgdyno.model.variants.variant import Variant, require_durable
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation, no_installation

_SINCE_MAJOR: Mapping[str, int] = {
    "autovacuum_worker_slots": 18,
    "file_copy_method": 18,
    "io_combine_limit": 17,
    "io_max_combine_limit": 18,
    "io_max_concurrency": 18,
    "io_method": 18,
    "io_workers": 18,
    "vacuum_buffer_usage_limit": 16,
    "vacuum_truncate": 18,
}
"""The version that introduced each setting used by presets or varied by comparisons of versions.

Source: the release notes of 16, 17 and 18.
"""


def installation_of(variant: Variant, other: Installation | None) -> Installation | None:
    """Return the installation that a variant names, else ``other``. Raises: UsageError if unknown."""
    return other if variant.server is None else find_installation(variant.server, workspace())


def require_preset_durability(variants: tuple[Variant, ...], preset: Mapping[str, str]) -> None:
    """Raise DurabilityError for unsafe settings that do not come from the preset itself.

    A published configuration is chosen by name, for servers that pgdyno creates; its variants are marked.
    """
    published = set(unsafe_settings(preset))
    require_durable(
        tuple(
            replace(
                variant,
                settings={
                    name: value
                    for name, value in variant.settings.items()
                    if f"{name}={value}" not in published
                },
            )
            for variant in variants
        )
    )


def leave_out_unknown(
    study: Study,
    preset: Iterable[str],
    factors: Mapping[str, Sequence[str]],
    installation: Installation | None,
) -> Study:
    """Return the study without settings that a variant's server is too old to have; notes list them.

    This applies to settings of a preset, and to a factor if another variant's server has the setting:
    variants of the old server that differ only in this factor become one. A factor that no server has is
    kept, and the server refuses it. ``installation`` runs variants that name no server.
    """
    majors = [_major(variant, installation) for variant in study.variants]
    newest = max(majors)
    varied = {name.lower(): name for name in factors}
    notes: dict[str, None] = {}
    kept: dict[str, Variant] = {}
    for variant, major in zip(study.variants, majors, strict=True):
        name = variant.name
        left_out = [
            setting
            for setting in variant.settings
            if major < _SINCE_MAJOR.get(setting, 0)
            and (newest >= _SINCE_MAJOR[setting] if setting in varied else setting in preset)
        ]
        for setting in left_out:
            value = variant.settings[setting]
            what = setting if setting in varied else f"{setting}={value}"
            notes[f"left out on PostgreSQL {major}, which does not have it: {what}"] = None
            name = _without_level(name, f"{varied[setting]}.{value}") if setting in varied else name
        settings = {key: value for key, value in variant.settings.items() if key not in left_out}
        kept.setdefault(name, replace(variant, name=name, settings=settings))
    return replace(study, variants=tuple(kept.values()), notes=(*study.notes, *notes))


def _without_level(name: str, level: str) -> str:
    """Return ``a`` for ``a-io_method.sync``."""
    return name.replace(f"-{level}", "", 1) if f"-{level}" in name else name.replace(f"{level}-", "", 1)


def _major(variant: Variant, installation: Installation | None) -> int:
    return (installation_of(variant, installation) or no_installation()).major
