# ruff: noqa: S608 — the tables are the tests' own
"""Queries whose degree follows from how they are made: what decides it, and how many workers there are.

All tables have one row on each page, so that a table of N rows has N pages. Reading a page costs next to
nothing, so that sharing out the rows pays as soon as a case allows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pgdyno.postgres.parallel_degree import Limit

SIZES = (30, 100, 300, 1000)
THRESHOLDS = (10, 30, 34, 100, 333, 1001)
OPTIONS = (0, 1, 3, 7)
PARTITIONS = 5
SMALL, LARGE = 4, 900
DEBUG = "debug_parallel_query"  # whatever the version calls it

# Rows of more than half a page: not compressed, not moved out of the table.
TABLE = """
    CREATE TABLE {name} (i int, fill text);
    ALTER TABLE {name} ALTER fill SET STORAGE PLAIN;
    INSERT INTO {name} SELECT i, repeat('x', 4200) FROM generate_series(1, {pages}) AS i"""
MADE = [
    *(TABLE.format(name=f"pages_{pages}", pages=pages) for pages in (*SIZES, 3000)),
    *(
        f"{TABLE.format(name=f'option_{option}', pages=300)};"
        f"ALTER TABLE option_{option} SET (parallel_workers = {option})"
        for option in OPTIONS
    ),
    f"CREATE TABLE indexed AS SELECT i FROM generate_series(1, {100_000}) AS i; CREATE INDEX ON indexed (i)",
    "CREATE TABLE parted (i int, fill text) PARTITION BY LIST (i)",
    *(
        f"CREATE TABLE part_{n} PARTITION OF parted FOR VALUES IN ({n});"
        f"ALTER TABLE part_{n} ALTER fill SET STORAGE PLAIN;"
        f"INSERT INTO part_{n} SELECT {n}, repeat('x', 4200) FROM generate_series(1, {pages})"
        for n, pages in enumerate([LARGE, *[SMALL] * (PARTITIONS - 1)], start=1)
    ),
    "CREATE TABLE nothing (i int); CREATE TABLE single AS SELECT 1 AS i",
    'CREATE TABLE "Quoted name" AS SELECT i FROM generate_series(1, 10000) AS i',
    "CREATE FUNCTION unsafe(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'",
    "CREATE FUNCTION lead(int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END'",
    "CREATE FUNCTION safe(int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN $1; END'",
    "CREATE FUNCTION mixed(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'",
    "CREATE FUNCTION mixed(text) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN 1; END'",
    "CREATE FUNCTION odd(int, int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN true; END'",
    "CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = odd)",
    "CREATE VIEW seen AS SELECT unsafe(i) AS u FROM pages_300",
]


@dataclass(frozen=True)
class Case:
    """``limits``: those that decide, first one first. ``workers``: what to ask for; None: nothing."""

    name: str
    sql: str
    planned: int
    limits: tuple[Limit, ...]
    settings: dict[str, str] = field(default_factory=dict)
    workers: int | None = None
    launchable: int | None = None
    pool_limit: Limit | None = None

    def __str__(self) -> str:
        return self.name


def steps_reached(pages: int, first: int) -> int:
    """Count the steps first, 3·first, 9·first, … that are not above the pages."""
    return sum(first * 3**n <= pages for n in range(20))


def settings(**changed: str | int) -> dict[str, str]:
    """Return settings under which nothing but what is changed keeps workers away."""
    usual = {
        "seq_page_cost": "0.001",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "max_parallel_workers_per_gather": "20",
        "max_parallel_workers": "20",
        "min_parallel_table_scan_size": "10",
        "min_parallel_index_scan_size": "10",
    }
    return {**usual, **{name: str(value) for name, value in changed.items()}}


def cases() -> list[Case]:
    """Return all of them."""
    return [
        *_of_sizes(),
        *_of_caps(),
        *_of_options(),
        *_of_costs(),
        *_of_partitions(),
        *_of_indexes(),
        *_of_queries(),
        *_of_tests(),
        *_of_pools(),
    ]


def _of_sizes() -> Iterator[Case]:
    for pages in SIZES:
        for first in THRESHOLDS:
            planned = steps_reached(pages, first)
            yield Case(
                f"{pages} pages from {first}",
                f"SELECT count(*) FROM pages_{pages}",
                planned,
                (Limit.TABLE_SIZE,),
                settings(min_parallel_table_scan_size=first),
                workers=planned + 2,
            )


def _of_caps() -> Iterator[Case]:
    by_size = steps_reached(1000, 10)  # 10, 30, 90, 270, 810: five
    for cap in range(by_size + 3):
        yield Case(
            f"capped at {cap}",
            "SELECT count(*) FROM pages_1000",
            min(cap, by_size),
            (Limit.CAP if cap < by_size else Limit.TABLE_SIZE,),
            settings(max_parallel_workers_per_gather=cap),
            workers=3,
        )


def _of_options() -> Iterator[Case]:
    for option in OPTIONS:
        for cap in (2, 8):
            yield Case(
                f"option {option} capped at {cap}",
                f"SELECT count(*) FROM option_{option}",
                min(option, cap),
                (Limit.CAP if option > cap else Limit.RELOPTION,),
                settings(max_parallel_workers_per_gather=cap),
                workers=4,
            )
    nothing = settings(max_parallel_workers_per_gather=0)
    both = (Limit.RELOPTION, Limit.CAP)
    yield Case("option 0 and cap 0", "SELECT count(*) FROM option_0", 0, both, nothing, workers=2)


def _of_costs() -> Iterator[Case]:
    count, rows = "SELECT count(*) FROM pages_300", "SELECT i FROM pages_300"
    dear_start, dear_rows = {"parallel_setup_cost": 1000}, {"parallel_tuple_cost": 1}
    setup, per_row = (Limit.SETUP_COST,), (Limit.TUPLE_COST,)
    yield Case("dear to start", count, 0, setup, settings(**dear_start), workers=3)
    yield Case("dear to pass on", rows, 0, per_row, settings(**dear_rows), workers=3)
    dear = settings(**dear_start, **dear_rows)
    yield Case("dear in both", rows, 0, (*setup, *per_row), dear, workers=5)
    small = settings(**dear_start, min_parallel_table_scan_size=500)
    yield Case("small and dear", count, 0, (Limit.TABLE_SIZE, *setup), small, workers=2)
    shut = settings(**dear_start, max_parallel_workers_per_gather=0)
    yield Case("capped and dear", count, 0, (Limit.CAP, *setup), shut, workers=2)


def _of_partitions() -> Iterator[Case]:
    sql = "SELECT count(*) FROM parted"
    by_count = 3  # five partitions: the binary logarithm is 2 and something, plus one
    by_size = steps_reached(LARGE, 10)  # 10, 30, 90, 270, 810: five
    yield Case("small partitions", sql, by_count, (Limit.CHILDREN,), _first(2000), workers=6)
    yield Case("large partition", sql, by_size, (Limit.TABLE_SIZE,), _first(10), workers=7)
    off = {**_first(2000), "enable_parallel_append": "off"}
    yield Case("partitions one by one", sql, 1, (Limit.TABLE_SIZE,), off, workers=2)
    capped = {**_first(10), "max_parallel_workers_per_gather": "2"}
    yield Case("partitions capped", sql, 2, (Limit.CAP,), capped, workers=4)


def _first(pages: int) -> dict[str, str]:
    return settings(min_parallel_table_scan_size=pages)


def _of_indexes() -> Iterator[Case]:
    # 100,000 entries of 4 bytes have 276 pages: 366 to a leaf that is filled by 90 percent, and two more.
    sql = "SELECT count(i) FROM indexed"
    by_index = {"enable_seqscan": "off", "enable_bitmapscan": "off"}
    few = settings(**by_index, min_parallel_index_scan_size=100, min_parallel_table_scan_size=1)
    yield Case("index from 100 pages", sql, steps_reached(276, 100), (Limit.INDEX_SIZE,), few, workers=4)
    many = settings(**by_index, min_parallel_index_scan_size=20)
    yield Case("index from 20 pages", sql, steps_reached(276, 20), (Limit.INDEX_SIZE,), many, workers=2)
    none = settings(**by_index, min_parallel_index_scan_size=5000)
    yield Case("index too small", sql, 0, (Limit.INDEX_SIZE,), none, workers=2)
    cheap = "SELECT i FROM indexed WHERE i = 7"
    yield Case("one row by index", cheap, 0, (Limit.SERIAL_IS_CHEAPER,), settings(), workers=2)


def _of_queries() -> Iterator[Case]:
    sure = settings()
    unsafe, restricted = (Limit.UNSAFE_FUNCTION,), (Limit.RESTRICTED_FUNCTION,)
    by_size = steps_reached(300, 10)
    size = (Limit.TABLE_SIZE,)
    one = "FROM pages_300"
    yield Case("unsafe function", f"SELECT unsafe(i) {one}", 0, unsafe, sure, workers=2)
    yield Case("unsafe by schema", f"SELECT public.Unsafe (i) {one}", 0, unsafe, sure, workers=2)
    yield Case("unsafe in a view", "SELECT count(u + 1) FROM seen WHERE u > 0", 0, unsafe, sure)
    yield Case("unsafe by operator", f"SELECT i === 1 {one}", 0, unsafe, sure, workers=2)
    yield Case("unsafe as one of two", f"SELECT mixed(i) {one}", 0, unsafe, sure)
    yield Case("named in a constant", f"SELECT count(*) {one} WHERE fill <> 'unsafe(1)'", by_size, size, sure)
    yield Case("safe function", f"SELECT sum(safe(i)) {one}", by_size, size, sure, workers=2)
    yield Case("restricted scan", f"SELECT count(*) {one} WHERE lead(i) = 1", 0, restricted, sure)
    yield Case("restricted at the top", f"SELECT lead(i) {one}", by_size, size, sure)
    yield Case("row locks", f"SELECT i {one} FOR UPDATE", 0, (Limit.ROW_LOCKS,), sure, workers=2)
    yield Case(
        "locks in WITH", f"WITH x AS (SELECT i {one} FOR SHARE) SELECT * FROM x", 0, (Limit.ROW_LOCKS,)
    )
    writing = f"WITH x AS (DELETE {one} RETURNING i) SELECT count(*) FROM x"
    yield Case("writes in WITH", writing, 0, (Limit.WRITES,), sure, workers=2)
    yield Case("no table", "SELECT 1", 0, (Limit.NO_TABLE,), sure, workers=2)
    yield Case(
        "function for a table", "SELECT count(*) FROM generate_series(1, 9)", 0, (Limit.NO_TABLE,), sure
    )
    sample = f"SELECT count(*) {one} TABLESAMPLE SYSTEM (50)"
    yield Case("sample", sample, 0, (Limit.KIND_OF_SCAN,), sure, workers=2)
    yield Case("made into a table", f"CREATE TABLE made AS SELECT count(*) {one}", by_size, size, sure)
    yield Case("into", f"SELECT count(*) INTO made {one}", by_size, size, sure)
    made = f"CREATE MATERIALIZED VIEW made AS SELECT count(*) {one}"
    yield Case("materialized", made, by_size, size, sure)
    ordered = f"SELECT i {one} ORDER BY fill"
    yield Case("gather merge", ordered, by_size, size, settings(enable_incremental_sort="off"), workers=2)
    cheaper = (Limit.SERIAL_IS_CHEAPER,)
    yield Case("empty table", "SELECT count(*) FROM nothing", 0, cheaper, sure, workers=1)
    yield Case("one row", "SELECT count(*) FROM single", 0, cheaper, settings(seq_page_cost=1), workers=1)
    joined = "SELECT count(*) FROM pages_1000 AS a JOIN pages_30 AS b USING (i)"
    yield Case("join", joined, steps_reached(1000, 10), size, settings(enable_parallel_hash="off"))
    quoted = 'SELECT count(*) FROM "Quoted name"'
    yield Case("quoted name", quoted, steps_reached(45, 10), size, sure, workers=5)


def _of_tests() -> Iterator[Case]:
    by_debug = (Limit.DEBUG,)
    yield Case("test of a query", "SELECT 1", 1, by_debug, {DEBUG: "on"}, workers=1)
    yield Case("hidden test", "SELECT 1", 1, by_debug, {DEBUG: "regress"})
    by_size = steps_reached(300, 10)
    real = "SELECT count(*) FROM pages_300"
    yield Case("test beside workers", real, by_size, (Limit.TABLE_SIZE,), settings() | {DEBUG: "on"})
    yield Case(
        "test not allowed", "SELECT unsafe(1)", 0, (Limit.UNSAFE_FUNCTION, Limit.NO_TABLE), {DEBUG: "on"}
    )


def _of_pools() -> Iterator[Case]:
    sql = "SELECT count(*) FROM pages_1000"
    by_size = steps_reached(1000, 10)
    size = (Limit.TABLE_SIZE,)
    one, none = settings(max_parallel_workers=1), settings(max_parallel_workers=0)
    yield Case("small pool", sql, by_size, size, one, by_size, launchable=1, pool_limit=Limit.POOL)
    yield Case("empty pool", sql, by_size, size, none, 2, launchable=0, pool_limit=Limit.POOL)
    # A server has eight processes for workers, and one of them is the launcher of logical replication.
    many = settings(min_parallel_table_scan_size=0, max_parallel_workers=100)
    by_page = steps_reached(1000, 1)  # 1, 3, …, 729: seven
    yield Case("just enough processes", sql, by_page, size, many, launchable=7)
    eight = steps_reached(3000, 1)  # 2187 is the eighth
    large = "SELECT count(*) FROM pages_3000"
    yield Case("few processes", large, eight, size, many, 9, launchable=7, pool_limit=Limit.PROCESSES)
