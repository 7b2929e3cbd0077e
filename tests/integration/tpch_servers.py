"""Servers with the data of a workload like TPC-H's, as pgdyno loads and starts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from tests.fix_progress import Remembered

from pgdyno.load.tpch_tables import data_set
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.instance import DATABASE
from pgdyno.studies.bundled.tpch.queries import NUMBERS, Answer, answer_of, query_text, validation_parameters

SMALLEST = 10  # thousandths; the smallest scale whose answers are known


@contextmanager
def loaded_arm(
    bin_directory: Path, thousandths: int = SMALLEST, variant: Variant | None = None
) -> Iterator[Arm]:
    """Provide a server on a fresh copy of the data, which are loaded at first use."""
    chosen, installation = variant or Variant("default"), installation_at(bin_directory, current_account())
    with open_scratch_arena(installation, [chosen], Remembered(), is_isolated=False) as arena:
        arena.restore([chosen], [0], data_set(thousandths))
        with arena.arms([chosen], [0], data_set(thousandths)) as (arm,):
            yield arm


@contextmanager
def connection(arm: Arm) -> Iterator[psycopg.Connection]:
    """Open a connection to an arm's database."""
    with closing(arm.server.connect(DATABASE)) as opened:
        yield opened


def arm_answers(arm: Arm, thousandths: int) -> dict[int, Answer]:
    """Return what a server answers in the validation run."""
    with connection(arm) as opened:
        return {
            number: answer_of(
                opened.execute(
                    query_text(number, validation_parameters(number, thousandths)).encode()
                ).fetchall()
            )
            for number in NUMBERS
        }


def values(arm: Arm, sql: str) -> list[object]:
    """Return the first column of a query."""
    with connection(arm) as opened:
        return [row[0] for row in opened.execute(sql.encode()).fetchall()]
