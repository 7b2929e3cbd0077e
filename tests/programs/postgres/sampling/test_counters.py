"""The size of a directory, compared with GNU du."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pgdyno.postgres.sampling.counters import directory_bytes


def test_it_is_what_du_says(tmp_path: Path) -> None:
    (tmp_path / "base" / "5").mkdir(parents=True)
    (tmp_path / "base" / "5" / "1259").write_bytes(b"x" * 8192)
    (tmp_path / "PG_VERSION").write_bytes(b"18\n")
    (tmp_path / "elsewhere").symlink_to("/usr")
    (tmp_path / "gone").symlink_to("nowhere")
    done = subprocess.run(["du", "-bs", str(tmp_path)], capture_output=True, text=True, check=True)
    assert directory_bytes(tmp_path) == int(done.stdout.split()[0])
