"""Effective settings of started servers, and facts about their hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg

from pgdyno.base.facts import Unknown, to_document
from pgdyno.host.files.kernel_files import read_kernel_files
from pgdyno.host.files.tree import Tree
from pgdyno.host.kernel_file import value_in
from pgdyno.host.processes.loaded_libraries import LoadedLibraries, inspect_libraries
from pgdyno.measure.arenas.arm import Arm
from pgdyno.model.experiments.experiment import Experiment, SettingDifference
from pgdyno.model.experiments.statements import UsedPlans
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.variants.durability import READ_BACK, SYNC_FUNCTIONS, DurabilityReading
from pgdyno.model.variants.variant import SQL, is_guc
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.inspection.inspect import inspect_dsn

Facts = Mapping[str, object]
_SETTINGS = """
    SELECT pg_catalog.lower(name), pg_catalog.current_setting(name)
      FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (%s)"""
_ELSEWHERE = LoadedLibraries(unknown=("the postmaster is not on this host",))


@dataclass
class Evidence:
    """Collects facts from arms as they start. ``host`` and ``server`` are the baseline's, as documents."""

    study: Study
    host: Facts = field(default_factory=dict)
    server: Facts = field(default_factory=dict)
    durability: tuple[DurabilityReading, ...] = ()
    plans: tuple[UsedPlans, ...] = ()
    notes: tuple[str, ...] = ()
    _settings: dict[tuple[str, str], SettingDifference] = field(default_factory=dict)

    def added_to(self, experiment: Experiment) -> Experiment:
        """Return the experiment with the collected facts."""
        return replace(
            experiment,
            settings=self.settings,
            host=self.host,
            server=self.server,
            durability=self.durability,
            plans=self.plans,
            notes=tuple(dict.fromkeys((*experiment.notes, *self.notes))),
        )

    @property
    def settings(self) -> tuple[SettingDifference, ...]:
        """Every variant's requested and effective settings."""
        return tuple(self._settings.values())

    def look_at(self, arms: Sequence[Arm]) -> None:
        """Record settings, and the baseline's facts if not recorded yet."""
        names = sorted({name for variant in self.study.variants for name in variant.settings} - {SQL})
        if len(arms) > 1:  # several servers share the pool: its size belongs to none of them
            names = [name for name in names if kind_of(name) != HUGE_PAGES]
        for arm in arms:
            if arm.begin_turn is not None:
                arm.begin_turn()
            self._note_settings(arm, names)
            if arm.variant.name == self.study.baseline and not self.server:
                self._note_facts(arm)

    def read_durability(self, arms: Sequence[Arm]) -> None:
        """Record the servers' durability where it differs from the readings so far."""
        for arm in arms:
            reading = read_durability(arm)
            if reading not in self.durability:
                self.durability = (*self.durability, reading)

    def note_plans(self, found: Sequence[UsedPlans]) -> None:
        """Record statements' plans."""
        self.plans = (*self.plans, *found)

    def note(self, text: str) -> None:
        """Record a note for the experiment."""
        self.notes = (*self.notes, text)

    def _note_settings(self, arm: Arm, names: Sequence[str]) -> None:
        """Record this arm's value of every setting that any variant changes, and the one it requests.

        An arm may have more settings than its variant: those with which servers count statements.
        """
        requested = next(one.settings for one in self.study.variants if one.name == arm.variant.name)
        effective = {**arm.effective([name for name in names if is_guc(name)]), **_shown(names)}
        for name in names:
            self._settings[arm.variant.name, name] = SettingDifference(
                arm.variant.name, name, requested.get(name), effective.get(name, "unknown")
            )

    def _note_facts(self, arm: Arm) -> None:
        found = inspect_dsn(arm.server.dsn, Figures())
        if not isinstance(found.inspected, Unknown):
            self.server = document_of(found.inspected.server)
        if not isinstance(found.host, Unknown):
            self.host = document_of(found.host)


def _shown(names: Sequence[str]) -> dict[str, str]:
    """Return the current values of the kernel files among the names."""
    files = read_kernel_files(Tree(Path("/")), [name for name in names if name.startswith("/")])
    return {path: value_in(text) for path, fact in files.items() if (text := fact.or_none()) is not None}


def document_of(facts: object) -> Facts:
    """Return facts as the document that an experiment stores."""
    document = to_document(facts)
    assert isinstance(document, dict)  # noqa: S101 — dataclasses become objects
    return document


def read_durability(arm: Arm) -> DurabilityReading:
    """Return the durability of an arm's server, as the server reports it.

    Raises: ServerCrashedError, with the server's log, if it exited; ServerError if it does not answer.
    """
    try:
        with closing(arm.connect_like_its_load()) as connection:
            rows = connection.execute(_SETTINGS, (list(READ_BACK),)).fetchall()
    except psycopg.OperationalError as error:
        raise arm.lost(error) from error
    pid = arm.server.pid
    libraries = _ELSEWHERE if pid is None else inspect_libraries(Tree(Path("/")), pid, SYNC_FUNCTIONS)
    return DurabilityReading(
        arm.variant.name, dict(rows), libraries.loader, libraries.replaced, "; ".join(libraries.unknown)
    )
