"""Trees as text come back as they were."""

from __future__ import annotations

from pathlib import Path

from tests.host_trees import pack, unpack

TEXT = """\
==> proc/1/cmdline (no newline at end)
postgres -D /data
==> proc/empty (no newline at end)

==> proc/self/ns/pid -> pid:[402653]
==> proc/spaced

a

"""


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path) -> None:
    unpack(TEXT, tmp_path)
    assert (tmp_path / "proc/1/cmdline").read_text() == "postgres -D /data"
    assert (tmp_path / "proc/empty").read_text() == ""
    assert (tmp_path / "proc/spaced").read_text() == "\na\n\n"
    assert str((tmp_path / "proc/self/ns/pid").readlink()) == "pid:[402653]"
    assert pack(tmp_path) == TEXT
