"""Count the statements of measured servers with pg_stat_statements, in all arms alike.

The extension is in a separate database, from which all counts are visible: a copy may contain code of its
owners. Planning is counted too. Counting takes 2 % of the throughput (docs/results/precision.md), so servers
count in a part of the turns only.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.memory import meminfo
from pgdyno.load.driver import Driver, job_options, prepared_statements
from pgdyno.measure.arenas.arm import Arm
from pgdyno.model.experiments.captured import CapturedStatement
from pgdyno.model.experiments.statements import NOTHING_COUNTED, SHARED, UNNAMED, StatementCount
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.postgres.sampling.statement_statistics import (
    LIBRARY,
    MOST_CHARACTERS,
    WHOLE_TEXT,
    CountedTimes,
    read_evictions,
    read_statement_times,
)
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.workload.capture.statements import as_counted

DATABASE = "postgres"
"""The extension's database, which never holds a copy."""
EVICTED = "the server evicted statements while it counted them; blocks in which it did have no counts"
_NUMBER = re.compile(r"(?<=[A-Za-z_])\d+\b")
_PRELOADED = "shared_preload_libraries"
_SETTINGS = {f"{LIBRARY}.track_planning": "on"}
_SHARED_BYTES = 3 << 20  # its shared memory, at most: 2 MB with the default number of statements
_USUAL_PAGE_BYTES = 2 << 20
_PAGE = re.compile(r"/hugepages-(\d+)kB/")


def why_uncounted(variants: Iterable[Variant]) -> str:
    """Return the variant and its setting that decide on counting themselves; empty if none does."""
    for variant in variants:
        for name, value in variant.settings.items():
            is_counter = name.lower() == "compute_query_id" or name.lower().startswith(f"{LIBRARY}.")
            if is_counter or (name.lower() == _PRELOADED and LIBRARY in value):
                return f"{variant.name} sets {name}, which decides how they are counted"
    return ""


def counting(variant: Variant) -> Variant:
    """Return a variant that also counts statements, with room for them in its pool of huge pages.

    With several pools, it is the one of the smallest pages; empty pools stay empty.
    """
    named = filter(None, (variant.settings.get(_PRELOADED, "").strip(), LIBRARY))
    settings = {**variant.settings, _PRELOADED: ",".join(named), **_SETTINGS}
    pools = [name for name, value in variant.files.items() if kind_of(name) == HUGE_PAGES and int(value) > 0]
    if pools:
        smallest = min(pools, key=_page_bytes)
        added = math.ceil(_SHARED_BYTES / _page_bytes(smallest))
        settings[smallest] = str(int(settings[smallest]) + added)
    return replace(variant, settings=settings)


def _page_bytes(pool: str) -> int:
    size = _PAGE.search(pool)
    return int(size[1]) << 10 if size else meminfo(Tree(Path("/")), "Hugepagesize").or_else(_USUAL_PAGE_BYTES)


NameOf: TypeAlias = Callable[[str], str | None]
"""Returns the name of a statement from its text; None: it is not of the workload."""


@dataclass(frozen=True)
class Begun:
    """An arm's counters, without texts, and evictions at the moment when counting begins."""

    counts: Mapping[int, CountedTimes]
    evictions: int


@dataclass(frozen=True)
class StatementCounting:
    """Counts an arm's statements. ``session`` is connected to ``DATABASE``."""

    arm: Arm
    session: ControlConnection
    name_of: NameOf

    @classmethod
    def of(cls, stack: ExitStack, arm: Arm, name_of: NameOf) -> StatementCounting:
        """Create the extension, with counting off and no counts; ``stack`` closes its session."""
        with arm.losses_explained():
            found = cls(arm, arm.server.connect(DATABASE), name_of)
            stack.callback(found.session.close)
            found.session.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public")
            found._track("none")
            found.session.execute("SELECT public.pg_stat_statements_reset()")
        return found

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count within the context."""
        self._track("top")
        try:
            yield
        finally:
            self._track("none")

    def read(self, most_characters: int = MOST_CHARACTERS) -> Mapping[int, CountedTimes]:
        """Return the counters of the database's statements, by query identifier. Raises: ServerError."""
        with self.arm.losses_explained():
            found = read_statement_times(self.session, self.arm.database, most_characters)
        return {one.id: one for one in found}

    def begin(self) -> Begun:
        """Begin to count; return the counters so far, for ``end``. Raises: ServerError."""
        self._track("top")
        return Begun(self.read(0), self._evictions())

    def end(self, begun: Begun) -> dict[str, StatementCount] | None:
        """Count no longer; return the increase by statement name. None: some were evicted.

        Raises: ServerError.
        """
        self._track("none")
        found = self.read(WHOLE_TEXT)  # a captured statement is recognised by all of its text
        if self._evictions() > begun.evictions:
            return None
        return counts_between(begun.counts, found, self.name_of)

    def _evictions(self) -> int:
        with self.arm.losses_explained():
            return read_evictions(self.session)

    def _track(self, statements: str) -> None:
        with self.arm.losses_explained():
            self.session.execute(f"ALTER SYSTEM SET pg_stat_statements.track = '{statements}'".encode())
            self.session.execute("SELECT pg_catalog.pg_reload_conf()")


def counts_between(
    before: Mapping[int, CountedTimes], after: Mapping[int, CountedTimes], name_of: NameOf
) -> dict[str, StatementCount]:
    """Return the increase by statement name; statements without a name are added up."""
    found: defaultdict[str, StatementCount] = defaultdict(lambda: NOTHING_COUNTED)
    for number, one in after.items():
        now, earlier = _count(one), before.get(number)
        count = now.since(_count(earlier)) if earlier else now
        if count.calls < 0 or count.time_ms < 0:  # evicted, and counted again from zero
            count = now
        if count.calls > 0:
            found[name_of(one.sql) or UNNAMED] += count
    return dict(found)


def _count(one: CountedTimes) -> StatementCount:
    time_ms = one.planning_ms + one.executing_ms
    return StatementCount(one.calls, time_ms, one.rows, one.blocks, one.wal_bytes)


def statement_names(workload: Workload, find_driver: Callable[[], Driver]) -> NameOf:
    """Return the function that names a workload's statements from the server's texts.

    A captured workload names all of its statements. Others' tables may differ in a number alone; statements
    that the driver does not name have their text as a name. Raises: GeneratorFailedError.
    """
    if workload.captured is not None:
        of_captured = _names(workload.captured.statements, as_counted)
        return cache(lambda text: of_captured.get(as_counted(text)))
    known: dict[str, str] = {}
    if DRIVER in workload.generators:
        options = job_options(workload)
        known = _names(prepared_statements(find_driver(), workload, options), shape)
    return cache(lambda text: known.get(shape(text)) or shape(text))


def _names(
    statements: Iterable[CapturedStatement | PreparedStatement], form: Callable[[str], str]
) -> dict[str, str]:
    """Return names by the form of the text; statements of equal form share their names."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for one in statements:
        found[form(one.sql)][one.name] = None
    return {text: SHARED.join(names) for text, names in found.items()}


def shape(sql: str) -> str:
    """Return a statement's text with the numbers in its names replaced: of sysbench's tables, for example.

    The server counts statements without the semicolon at their end.
    """
    return _NUMBER.sub("#", " ".join(sql.split()).rstrip("; "))
