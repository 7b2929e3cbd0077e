"""Answers the 22 queries like TPC-H's with DuckDB: what PostgreSQL's answers are held against.

    python -m bench.tpch_answers 0.01 0.1 1

prints them as they stand in ``studies/bundled/tpch/answers.toml``. The rows are tpchgen's and
the queries pgdyno's, and everything that computes is DuckDB.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import duckdb

from pgdyno.load.tpch_tables import data_set, filling
from pgdyno.studies.bundled.tpch.queries import NUMBERS, Answer, answer_of, query_text, validation_parameters

TPCHGEN = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"


def duckdb_rows(thousandths: int, directory: Path) -> dict[int, list[tuple[object, ...]]]:
    """Return what DuckDB answers at a scale in thousandths, by query; the rows pass through ``directory``."""
    scale = ["--scale-factor", f"{thousandths / 1000:g}", "--output-dir", str(directory)]
    subprocess.run([str(TPCHGEN), "csv", "--quiet", *scale], check=True)
    with duckdb.connect() as connection:
        made_of = filling(data_set(thousandths))
        connection.execute(made_of.tables)
        for table in made_of.rows:
            connection.execute(f"COPY {table} FROM '{directory / table}.csv' (HEADER)")
        return {
            number: connection.execute(
                query_text(number, validation_parameters(number, thousandths))
            ).fetchall()
            for number in NUMBERS
        }


def duckdb_answers(thousandths: int) -> dict[int, Answer]:
    """Return the answers, as far as they are remembered."""
    with tempfile.TemporaryDirectory() as directory:
        return {number: answer_of(rows) for number, rows in duckdb_rows(thousandths, Path(directory)).items()}


def main() -> None:
    """Print the answers at the scales that the command line names."""
    for scale in sys.argv[1:]:
        thousandths = round(float(scale) * 1000)
        print(f"\n[thousandths.{thousandths}]")
        for number, answer in duckdb_answers(thousandths).items():
            print(f'q{number} = {{ rows = {answer.rows}, checksum = "{answer.checksum}" }}')


if __name__ == "__main__":
    main()
