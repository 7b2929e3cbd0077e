"""Full-page images in the WAL per transaction: of pages changed for the first time since a checkpoint."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, per_transaction

METER = Meter("wal_full_page_images_per_transaction", "pg_stat_wal, since version 14", reports_late=True)


def read(context: MeterContext) -> Counters | None:
    """Return the number of images so far; None before version 14."""
    if not context.has_relation("pg_stat_wal"):
        return None
    (count,) = context.query("SELECT wal_fpi FROM pg_catalog.pg_stat_wal")
    return None if count is None else (count,)


value = per_transaction
