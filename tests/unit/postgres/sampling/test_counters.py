"""Differences of counters."""

from __future__ import annotations

from pgdyno.postgres.sampling.counters import difference


def test_what_was_counted_is_after_minus_before() -> None:
    before = {"pg_stat_wal.wal_fpi": 5.0, "pg_stat_wal.wal_records": 100.0}
    after = {"pg_stat_wal.wal_fpi": 8.0, "pg_stat_wal.wal_records": 100.0}
    assert difference(before, after) == {"pg_stat_wal.wal_fpi": 3.0, "pg_stat_wal.wal_records": 0.0}


def test_tables_made_meanwhile_begin_at_zero() -> None:
    assert difference({}, {"pg_stat_all_tables.n_tup_ins": 7.0}) == {"pg_stat_all_tables.n_tup_ins": 7.0}


def test_of_pg_stat_io_only_what_has_moved_is_kept() -> None:
    before = {"pg_stat_io.walwriter.wal.normal.writes": 2.0, "pg_stat_io.walwriter.wal.init.writes": 1.0}
    after = {"pg_stat_io.walwriter.wal.normal.writes": 2.0, "pg_stat_io.walwriter.wal.init.writes": 4.0}
    assert difference(before, after) == {"pg_stat_io.walwriter.wal.init.writes": 3.0}
