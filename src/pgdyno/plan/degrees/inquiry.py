"""Access to the planner and the catalogs for one statement: a server's, or a fake in tests."""

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
    """``plan`` returns the plan with some settings changed; ``tables`` and ``hazards`` read the catalogs.

    ``settings`` are the settings in effect for the statement, by name.
    """

    plan: Callable[[Mapping[str, str]], Plan]
    tables: Callable[[Iterable[Scan]], Mapping[str, Table]]
    hazards: Callable[[Plan], tuple[Hazard, ...]]
    settings: Mapping[str, Guc]

    @property
    def cap(self) -> int:
        """The maximum number of workers per Gather."""
        return int(self.settings[CAP].setting)

    @property
    def debug(self) -> Guc:
        """The setting ``debug_parallel_query``, named ``force_parallel_mode`` before 16."""
        return self.settings.get(Limit.DEBUG.value) or self.settings[_DEBUG_BEFORE_16]

    def pages(self, size: Limit) -> int:
        """Return a size threshold in pages, the setting's unit."""
        return int(self.settings[size.value].setting)

    def shown(self, limit: Limit) -> str:
        """Return a setting with its value: ``parallel_setup_cost = 1000``."""
        guc = self.debug if limit is Limit.DEBUG else self.settings[limit.value]
        return f"{guc.name} = {guc.display()}"

    def without_debug(self) -> Plan:
        """Return the plan with ``debug_parallel_query`` off."""
        return self.plan(self.undebugged({}))

    def undebugged(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return the settings to test, with ``debug_parallel_query`` off."""
        return settings if self.debug.setting == "off" else {**settings, self.debug.name: "off"}
