"""Failed transactions of pgbench's scripts, of sysbench and of captured workloads, on real servers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer

from pgdyno.load.sysbench import wrapper_text
from pgdyno.measure.blocks.transactions import parse

BRIEFLY = ("--embedded", "--scale", "1", "--blocks", "5", "--block", "300ms", "--clients", "2")
# Without the default's pause b is faster, and fails for every second value of :n, at all tries.
FAILING = r"""
\set n random(1, 2)
SELECT set_config('shop.n', (:n)::text, false);
SELECT pg_sleep(CASE current_setting('work_mem') WHEN '8MB' THEN 0 ELSE 0.1 END);
DO $$ BEGIN
    IF current_setting('work_mem') = '8MB' AND current_setting('shop.n') = '1' THEN
        RAISE EXCEPTION 'conflict' USING ERRCODE = '40001';
    END IF;
END $$;
"""
# The first try of every transaction fails.
SYSBENCH_SCRIPT = """
sysbench.cmdline.options = {}
function thread_init()
   connection = sysbench.sql.driver():connect()
   tries = 0
end
function event()
   tries = tries + 1
   if tries % 2 == 1 then
      connection:query("SELECT pg_sleep(0.02)")
      connection:query("DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$")
   end
   connection:query("SELECT 1")
end
"""


@pytest.mark.server
@pytest.mark.usefixtures("home", "pg18_bin")
def test_a_variant_that_fails_more_often_is_not_better(tmp_path: Path) -> None:
    script = tmp_path / "failing.sql"
    script.write_text(FAILING)
    done = pgdyno("compare", "a", "b:work_mem=8MB", "--script", str(script), *BRIEFLY, "--json", "--gate")
    assert done.returncode == 5, done.stderr
    found = json.loads(done.stdout)
    throughput = found["comparisons"][0]
    assert (throughput["metric"], throughput["verdict"]) == ("throughput_tps", "inconclusive")
    assert "of the transactions of b failed, 0.0\N{NO-BREAK SPACE}% of a (" in throughput["reason"]
    without, with_failures = found["failed_transactions"]
    assert (without["variant"], without["share"], without["failures"]) == ("a", 0.0, [])
    assert 0.2 < with_failures["share"] < 0.8
    (reason,) = with_failures["failures"]
    assert (reason["sqlstate"], reason["statement"]) == ("40001", "")

    shown = pgdyno("report", found["experiment"])
    page = Path(shown.stdout.split()[-1]).read_text()
    assert '<h2 id="failures">Failures</h2>' in page
    assert "40001" in page


@pytest.mark.server
def test_sysbench_logs_what_failed_and_counts_the_tries_in_the_latency(
    pg18: RealServer, tmp_path: Path
) -> None:
    program = shutil.which("sysbench")
    if program is None:
        pytest.skip("sysbench is not installed")
    (tmp_path / "wrapper.lua").write_text(wrapper_text())
    (tmp_path / "failing.lua").write_text(SYSBENCH_SCRIPT)
    server = ("--db-driver=pgsql", f"--pgsql-host={pg18.socket_directory}", f"--pgsql-port={pg18.port}")
    user = ("--pgsql-user=postgres", "--pgsql-db=postgres")
    done = subprocess.run(
        [program, "wrapper.lua", *server, *user, "--events=5", "run"],
        cwd=tmp_path,
        env={**os.environ, "PGDYNO_SCRIPT": "failing", "PGDYNO_LOG": "log"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    found = parse((tmp_path / "log.0").read_bytes())
    assert found.count == 5
    assert {cause: len(at_ns) for cause, at_ns in found.failed_ns.items()} == {("40001", ""): 5}
    assert min(found.latency_us) > 20_000
