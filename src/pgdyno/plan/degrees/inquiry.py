"""Questions about a statement's degree, for a server or for a test's planner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pgdyno.postgres.guc import Guc
from pgdyno.postgres.parallel_degree import MAX_WORKERS, Hazard, Limit, Scan, Table
from pgdyno.postgres.planner.parallel_plan import Plan

_DEBUG_BEFORE_16 = "force_parallel_mode"
CAP = Limit.CAP.value
UNCAPPED = {CAP: str(MAX_WORKERS)}
FREE_OF_COST = {Limit.SETUP_COST.value: "0", Limit.TUPLE_COST.value: "0"}


@dataclass(frozen=True)
class Inquiry:
    """``plan`` gives the plan with some settings changed; ``tables`` and ``hazards`` look into catalogs.

    ``settings`` are those that the statement is planned with, by name.
    """

    plan: Callable[[Mapping[str, str]], Plan]
    tables: Callable[[Iterable[Scan]], Mapping[str, Table]]
    hazards: Callable[[Plan], tuple[Hazard, ...]]
    settings: Mapping[str, Guc]

    @property
    def cap(self) -> int:
        """The most workers of a Gather."""
        return int(self.settings[CAP].setting)

    @property
    def debug(self) -> Guc:
        """The setting that has plans run by a worker to test them; it was renamed in 16."""
        return self.settings.get(Limit.DEBUG.value) or self.settings[_DEBUG_BEFORE_16]

    def pages(self, size: Limit) -> int:
        """Return a threshold of size in pages, which is its unit."""
        return int(self.settings[size.value].setting)

    def shown(self, limit: Limit) -> str:
        """Return a setting with its value: ``parallel_setup_cost = 1000``."""
        guc = self.debug if limit is Limit.DEBUG else self.settings[limit.value]
        return f"{guc.name} = {guc.display()}"

    def without_debug(self) -> Plan:
        """Return the plan as the planner alone chooses it."""
        return self.plan(self.undebugged({}))

    def undebugged(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return settings to try, with settings for debugging switched off."""
        return settings if self.debug.setting == "off" else {**settings, self.debug.name: "off"}
