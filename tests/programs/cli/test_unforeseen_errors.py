"""An error that nobody expected: what the user reads, and the status that a script sees."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from pgdyno.cli import main
def broken(**_):
    raise ZeroDivisionError("division by \\x1b[2Jzero")
main.cli.main = broken
main.main([])
"""


def test_an_error_that_nobody_expected_says_what_to_do_and_where_it_happened() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-3].startswith("pgdyno: ERROR:  unforeseen ZeroDivisionError: division by ")
    assert lines[-3].endswith("zero  (PGD-900)")
    assert lines[-2] == "DETAIL:  this is a bug of pgdyno; the lines above help to correct it"
    assert lines[-1] == (
        "HINT:  pgdyno status shows whether something is still changed, and pgdyno revert restores it"
    )
    assert "\x1b" not in done.stderr
