"""pgbench's data set, and an invariant of its script tpcb-like."""

from __future__ import annotations

from pgdyno.model.experiments.workload import DataSet

# Scale 40 is about 600 MB: several times the default shared_buffers of 128 MB.
# Size measured with PostgreSQL 18: 15.0 MB per unit of scale.
PGBENCH_DATA = DataSet(name="pgbench", scale=40, bytes_per_scale=15_500_000)

# Every tpcb-like transaction adds the same delta to an account, a teller, a branch and the history.
BALANCES_AGREE = """
SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)
   AND (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches)
"""
