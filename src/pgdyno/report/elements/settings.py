"""Settings before and after: the baseline's value, the requested value and the effective value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from pgdyno.base.errors import SettingError
from pgdyno.model.experiments.experiment import Experiment, SettingDifference
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.guc import normalise
from pgdyno.report.elements.facts import setting_value
from pgdyno.report.elements.tables import NOTHING

_ROUNDING = Decimal("0.0001")
"""Largest relative difference between effective and requested value: amounts are rounded to 8 kB blocks."""


@dataclass(frozen=True)
class SettingRow:
    """One setting of one variant against the baseline."""

    name: str
    before: str
    requested: str
    effective: str
    is_as_requested: bool


@dataclass(frozen=True)
class VariantSettings:
    """All settings in which a variant differs from the baseline."""

    variant: str
    rows: tuple[SettingRow, ...]


def variant_settings(experiment: Experiment) -> tuple[VariantSettings, ...]:
    """Return the settings of every variant; the baseline is included only if it sets any."""
    recorded = {(s.variant, s.name): s for s in experiment.settings}
    before = baseline_values(experiment)
    return tuple(
        VariantSettings(variant.name, rows)
        for variant in experiment.variants
        if (rows := _rows(variant.name, variant.settings, recorded, before))
        and (variant.name != experiment.baseline or variant.settings)
    )


def baseline_values(experiment: Experiment) -> dict[str, str]:
    """Return the baseline's settings: as recorded, else from the variant, the plan or the server's facts."""
    found = experiment.server.get("settings")
    values: dict[str, str] = (
        {name: setting_value(guc) for name, guc in found.items() if isinstance(guc, Mapping)}
        if isinstance(found, Mapping)
        else {}
    )
    for line in experiment.plan.lines if experiment.plan else ():
        values[line.change.key] = line.change.current or "not set"
    for variant in experiment.variants:
        if variant.name == experiment.baseline:
            values |= variant.settings
    values |= {s.name: s.effective for s in experiment.settings if s.variant == experiment.baseline}
    return values


def unsafe_variants(experiment: Experiment) -> tuple[Variant, ...]:
    """Return the variants that can lose committed data, with their effective settings."""
    effective = [
        Variant(
            variant.name,
            {
                **variant.settings,
                **{s.name.lower(): s.effective for s in experiment.settings if s.variant == variant.name},
            },
        )
        for variant in experiment.variants
    ]
    return tuple(variant for variant in effective if not variant.is_durable)


def is_same_value(requested: str, effective: str) -> bool:
    """Whether two texts are the same value, such as ``2GB`` and ``2048MB``, or equal after rounding.

    The server rounds to its unit. A bare number has no known unit and equals only the same text.
    """
    if requested.strip().casefold() == effective.strip().casefold():
        return True
    if requested.strip().isdecimal() or effective.strip().isdecimal():
        return False
    return any(_same_in(unit, requested, effective) for unit in ("B", "us"))


def _rows(
    variant: str,
    requested: Mapping[str, str],
    recorded: Mapping[tuple[str, str], SettingDifference],
    before: Mapping[str, str],
) -> tuple[SettingRow, ...]:
    own = (name for (owner, name), s in recorded.items() if owner == variant and s.requested is not None)
    names = sorted({*requested, *own})
    rows = []
    for name in names:
        found = recorded.get((variant, name))
        wanted = found.requested if found and found.requested is not None else requested[name]
        effective = found.effective if found else NOTHING
        is_same = found is None or is_same_value(wanted, effective)
        rows.append(SettingRow(name, before.get(name, NOTHING), wanted, effective, is_same))
    return tuple(rows)


def _same_in(unit: str, one: str, other: str) -> bool:
    try:
        a, b = normalise(one, unit), normalise(other, unit)
        return abs(a - b) <= abs(a) * _ROUNDING
    except SettingError:
        return False
