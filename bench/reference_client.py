"""What a row costs the client in step l.i1 of the Insert Benchmark: pgdyno-driver beside a Python client.

Both insert, and delete, on the same table of the same server by turns, A B B A and B A A B, 50 rows per
commit. CPU time is that of all processes of a client, in the kernel too; what a program needs to start and to
connect is measured by short turns and taken off. Of each round one ratio is taken; intervals are over rounds.

Client and server have CPUs of their own, as in experiments. To wake somebody on another CPU costs much in a
virtual machine, and waiting for commits is what both clients do most: ``--shared`` shows how much.

The reference is ``bench/ibench/iibench.py`` of github.com/mdcallag/mytools, which is not part of pgdyno:
name your copy with ``--reference``, and with ``--python`` one that has psycopg2. Without it a loop with
psycopg and the same statements takes its place (``psycopg_inserts.py``), and what is found is not said of the
reference: every verdict names the stand-in.

    python -m bench.reference_client --reference iibench.py --python venv/bin/python --rounds 6
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

from bench.driver import LEVEL, Finding, Turns, finding
from bench.driver_programs import DRIVER, Cost, Program, last_phase, measure, run

from pgdyno.cli.output import Lines
from pgdyno.load import driver
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded

GOAL = 0.1  # client CPU per row, driver / reference
STAND_IN = "psycopg loop"
STEP = "insert-benchmark-l.i1"
EMPTY = DataSet(name="empty", scale=1, bytes_per_scale=0)
# As in bench.driver: what the server does by itself is not what is measured. Commits wait for the disk, which
# costs no client any CPU time.
VARIANT = Variant("default", {"autovacuum": "off", "max_wal_size": "8GB", "checkpoint_timeout": "1h"})
SHORT_ROWS = 50  # one commit: start and end
LIMIT_S = 600


def our_driver(arena: ScratchArena, arm: Arm, rows: int, table_rows: int) -> Program:
    """Return the driver with one client: an inserting, a deleting and a reading connection."""
    argv = (*_step(arena, arm, STEP, rows, table_rows), "--json")
    return Program(DRIVER, argv, _rows_of_driver)


def reference(arm: Arm, rows: int, client: Path, python: Path) -> Program:
    """Return the reference client as its own scripts call it for l.i1: four processes, three connections."""
    target, directory = arm.target(), client.parent
    argv = (
        *("env", f"--chdir={directory}", f"PGPORT={target.port}", str(python), str(client)),
        *("--dbms=postgres", f"--db_name={target.database}", f"--db_host={target.host}"),
        *(f"--db_user={target.user}", "--table_name=pi1", "--num_secondary_indexes=3", "--delete_per_insert"),
        *(f"--max_rows={rows}", "--rows_per_commit=50", "--data_length_min=10", "--data_length_max=20"),
        *("--secs_per_report=1", "--my_id=1", "--seed=1"),
    )
    return Program("iibench.py", argv, lambda said: _rows_if_done(said, rows), is_unprivileged=False)


def psycopg_loop(arm: Arm, rows: int) -> Program:
    """Return the loop that stands in for the reference."""
    target = arm.target()
    where = (target.host, str(target.port), target.user, target.database)
    argv = (sys.executable, "-m", "bench.psycopg_inserts", *where, str(rows))
    return Program(STAND_IN, argv, lambda said: _rows_if_done(said, rows), is_unprivileged=False)


def net(whole: Cost, short: Cost) -> Cost:
    """Return what a turn has cost without its start and end."""
    return Cost(
        whole.program,
        whole.transactions - short.transactions,
        whole.client_cpu_us - short.client_cpu_us,
        whole.server_cpu_us - short.server_cpu_us,
    )


def play(asked: argparse.Namespace) -> list[Turns]:
    """Measure all rounds on one server, with one table that stays as large as it is."""
    progress, played = Lines(), []
    with open_scratch_arena(embedded(), (VARIANT,), progress, is_isolated=not asked.shared) as arena:
        arena.restore([VARIANT], [0], EMPTY)
        with arena.arms([VARIANT], [0], EMPTY) as (arm,):
            progress.step(f"loading {asked.table_rows} rows")
            for step in ("insert-benchmark-l.i0", "insert-benchmark-l.x"):
                run(arena, [*_step(arena, arm, step, 50, asked.table_rows)], LIMIT_S)
            for number in range(asked.rounds):
                progress.step(f"round {number + 1} of {asked.rounds}")
                pairs = [
                    (_theirs(arena, arm, rows, asked), our_driver(arena, arm, rows, asked.table_rows))
                    for rows in (asked.rows, SHORT_ROWS)
                ]
                played.append(Turns(STEP, number, _turns(arena, arm, pairs, number)))
    return played


def _turns(
    arena: ScratchArena, arm: Arm, pairs: list[tuple[Program, Program]], number: int
) -> tuple[Cost, ...]:
    (first, short_first), (second, short_second) = zip(*pairs, strict=True)
    if number % 2:
        first, short_first, second, short_second = second, short_second, first, short_first
    start = {short.name: measure(arena, arm, short, LIMIT_S) for short in (short_first, short_second)}
    order = (first, second, second, first)
    return tuple(net(measure(arena, arm, program, LIMIT_S), start[program.name]) for program in order)


def _theirs(arena: ScratchArena, arm: Arm, rows: int, asked: argparse.Namespace) -> Program:
    if asked.reference is None:
        return psycopg_loop(arm, rows)
    directory = arena.loads.scratch / "reference"  # it leaves files where it runs
    directory.mkdir(exist_ok=True)
    client = Path(shutil.copy(asked.reference, directory))
    return reference(arm, rows, client, asked.python)


def _step(arena: ScratchArena, arm: Arm, step: str, rows: int, table_rows: int) -> tuple[str, ...]:
    program, target = str(arena.loads.find_driver().program), driver.conninfo(arm.target())
    options = f"-orows={json.dumps({'i0': table_rows, 'i1': rows, 'i2': 5})}"
    # One commit after the other is all that is asked for: for ever is longer than a turn.
    return (program, "run", step, target, options, "-ostep_seconds=1", f"--time={LIMIT_S}")


def _rows_of_driver(output: str) -> int:
    roles = {role["name"]: role for role in last_phase(output)["arms"][0]["roles"]}
    return int(roles["insert"]["rows"])


def _rows_if_done(output: str, rows: int) -> int:
    if "Done" not in output or "SQL error" in output:
        raise SystemExit(f"the client did not insert its rows: {output[-800:]}")
    return rows


def judged(played: list[Turns], side: str) -> Finding:
    """Judge one side; a verdict against the stand-in says so, because the goal is about the reference."""
    found = finding(played, side, GOAL)
    if found.original != STAND_IN:
        return found
    return replace(found, verdict=f"against the stand-in, not the reference: {found.verdict}")


def show(found: list[Finding], played: list[Turns], rows: int) -> None:
    """Print both sides' cost and their ratio."""
    print(f"\n{STEP}: CPU per inserted row, {rows} rows a turn, {LEVEL:.0%} intervals")
    for each in found:
        costs = [cost for turns in played for cost in turns.costs]
        by_program = {
            name: sum(
                getattr(c, each.metric.removesuffix("_per_transaction")) for c in costs if c.program == name
            )
            / sum(c.transactions for c in costs if c.program == name)
            for name in (DRIVER, each.original)
        }
        bounds = "-" if each.low is None else f"{each.low:.3f} … {each.high:.3f}"
        print(
            f"  {each.metric.partition('_')[0]:7} driver {by_program[DRIVER]:7.2f} µs   {each.original} "
            f"{by_program[each.original]:7.2f} µs   ratio {each.ratio:.3f}  {bounds}  {each.verdict}"
        )


def main() -> None:
    """Measure, print, and write what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reference", type=Path, help="your copy of iibench.py")
    parser.add_argument("--python", type=Path, default=Path("python3"), help="a Python that has psycopg2")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--rows", type=int, default=50_000, help="that each turn inserts, and deletes")
    parser.add_argument("--table-rows", type=int, default=200_000)
    parser.add_argument("--shared", action="store_true", help="let client and server share all CPUs")
    parser.add_argument("--json", type=Path, help="where to write findings and single turns")
    asked = parser.parse_args()
    if os.sep in str(asked.python):
        asked.python = asked.python.absolute()
    played = play(asked)
    found = [judged(played, side) for side in ("client_cpu_us", "server_cpu_us")]
    show(found, played, asked.rows)
    if asked.json:
        document = {
            "findings": [asdict(each) for each in found],
            "turns": [asdict(turns) for turns in played],
        }
        asked.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
