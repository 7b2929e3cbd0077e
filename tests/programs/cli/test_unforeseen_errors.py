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
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=250
    )
    assert done.returncode == 1
    error, detail, hint = done.stderr.splitlines()
    assert error.startswith("pgdyno: ERROR:  unforeseen ZeroDivisionError: division by ")
    assert error.endswith("zero  (PGD-900)")
    assert detail.startswith("DETAIL:  raised in cli/main.py:")
    assert hint == (
        "HINT:  this is a bug in pgdyno: please report it with these lines; pgdyno status shows whether "
        "any change is still in effect, and pgdyno revert undoes it"
    )
    assert "\x1b" not in done.stderr
