"""Workload files are UTF-8, whatever a program's locale."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.fix_captured import workload

from pgdyno.store.workload_file import write_workload_file

_READ_AND_WRITE = (
    "import sys; from pathlib import Path; from pgdyno.store.workload_file import *; "
    "write_workload_file(Path(sys.argv[2]), read_workload_file(Path(sys.argv[1])))"
)


def test_a_workload_is_read_and_written_in_utf_8(tmp_path: Path) -> None:
    path, again = tmp_path / "w.toml", tmp_path / "again.toml"
    write_workload_file(path, replace(workload(), notes=("größer",)))
    assert "größer" in path.read_text(encoding="utf-8")
    locale = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", _READ_AND_WRITE, path, again], env=locale, check=True)
    assert again.read_bytes() == path.read_bytes()
