"""Check read-back values: whether servers were as durable as their variants' settings. Pure.

An unsafe value is a breach unless the variant sets it; a variant that sets it is marked as not durable. A
difference between two servers that neither variant sets also makes them incomparable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Decision, Verdict
from pgdyno.model.variants.durability import DURABILITY_LOCK, READ_BACK, DurabilityReading, is_same_value
from pgdyno.model.variants.variant import Variant

_FIXED_BY_INITDB = "data_checksums"
"""Many servers are created with it off, independently of variants: only a difference counts."""


def withhold(verdicts: Sequence[Verdict], experiment: Experiment) -> tuple[Verdict, ...]:
    """Return the verdicts, without a decision where the durability of either server is in doubt."""
    return tuple(
        withheld(verdict, why) if (why := doubts(experiment, verdict.baseline, verdict.variant)) else verdict
        for verdict in verdicts
    )


def withheld(verdict: Verdict, why: Sequence[str]) -> Verdict:
    """Return the verdict without a decision, with these reasons."""
    reason = f"not comparable: {'; '.join(dict.fromkeys(why))}"
    return replace(verdict, decision=Decision.INCONCLUSIVE, reason=reason, is_withheld=True)


def doubts(experiment: Experiment, baseline: str, variant: str) -> tuple[str, ...]:
    """Return the reasons why no verdict between two variants is possible, in sentences."""
    names = (baseline, variant)
    return (*(why for name in names for why in breaches(experiment, name)), *_differences(experiment, names))


def warnings(experiment: Experiment) -> tuple[str, ...]:
    """Return each unexpected read-back value once, with the kind of problem."""
    names = [variant.name for variant in experiment.variants]
    unsafe = [why for name in names for why in breaches(experiment, name)]
    unlike = [
        why for name in _others(experiment) for why in _differences(experiment, (experiment.baseline, name))
    ]
    return (
        *dict.fromkeys(f"NOT DURABLE: {why}" for why in unsafe),
        *dict.fromkeys(f"NOT COMPARABLE: {why}" for why in unlike),
    )


def is_hopeless(experiment: Experiment) -> bool:
    """Whether no comparison of the experiment can get a verdict any more."""
    others = _others(experiment)
    return bool(others) and all(doubts(experiment, experiment.baseline, name) for name in others)


def breaches(experiment: Experiment, name: str) -> tuple[str, ...]:
    """Return the reasons why a server is less durable than its variant's settings."""
    variant = _variant(experiment, name)
    readings = _readings(experiment, name)
    found = [
        f"the server of {name} ran with {setting}={value}, which its variant does not set: {lock.risk}"
        for setting, lock in DURABILITY_LOCK.items()
        if setting != _FIXED_BY_INITDB
        for value in _values(readings, setting)
        if not lock.allows(value) and not _sets(variant, setting, value)
    ]
    found += [
        f"the server of {name} ran with {library}, which replaces {', '.join(functions)}: written data may "
        "not be on disk"
        for reading in readings
        for library, functions in reading.replaced.items()
    ]
    return tuple(dict.fromkeys(found))


def _differences(experiment: Experiment, names: tuple[str, str]) -> Iterator[str]:
    """Yield the differences between two servers that neither variant sets."""
    one, other = (_readings(experiment, name) for name in names)
    variants = [_variant(experiment, name) for name in names]
    if not one or not other:
        return
    for setting in READ_BACK:
        if any(setting in variant.settings for variant in variants if variant is not None):
            continue
        values = [_values(one, setting), _values(other, setting)]
        if all(values) and values[0] != values[1]:
            yield _difference(setting, names, values)
    loaders = [_loader(readings, variant) for readings, variant in zip((one, other), variants, strict=True)]
    for variable in dict.fromkeys([*loaders[0], *loaders[1]]):
        shown = [(loader.get(variable, "not set"),) for loader in loaders]
        if shown[0] != shown[1]:
            yield _difference(variable, names, shown)


def _difference(what: str, names: tuple[str, str], values: Sequence[Collection[str]]) -> str:
    listed = [f"{' and '.join(shown) or 'empty'} ({name})" for name, shown in zip(names, values, strict=True)]
    return f"{what} differs, but neither variant sets it: {', '.join(listed)}"


def _others(experiment: Experiment) -> tuple[str, ...]:
    return tuple(one.name for one in experiment.variants if one.name != experiment.baseline)


def _variant(experiment: Experiment, name: str) -> Variant | None:
    return next((variant for variant in experiment.variants if variant.name == name), None)


def _readings(experiment: Experiment, name: str) -> list[DurabilityReading]:
    return [reading for reading in experiment.durability if reading.variant == name]


def _values(readings: Sequence[DurabilityReading], setting: str) -> tuple[str, ...]:
    """Return all values read back for a setting, in chronological order."""
    return tuple(dict.fromkeys(one.settings[setting] for one in readings if setting in one.settings))


def _loader(readings: Sequence[DurabilityReading], variant: Variant | None) -> dict[str, str]:
    """Return the dynamic loader's variables that the variant does not set."""
    own = {} if variant is None else variant.environment
    return {name: value for one in readings for name, value in one.loader.items() if name not in own}


def _sets(variant: Variant | None, setting: str, value: str) -> bool:
    return (
        variant is not None
        and setting in variant.settings
        and is_same_value(variant.settings[setting], value)
    )
