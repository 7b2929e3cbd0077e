"""A server's programs are run only where its path leads to the very program that runs."""

from __future__ import annotations

from pathlib import Path

from pgdyno.app.inspection.server_programs import programs_of
from pgdyno.model.facts import Fact, Unknown, unknown

PID = Fact(4711, "/proc")


def proc(root: Path, program: Path | str, *, namespace: str = "mnt:[1]") -> Path:
    """A /proc with this process and a postmaster."""
    for process, name in (("self", "mnt:[1]"), ("4711", namespace)):
        (root / "proc" / process / "ns").mkdir(parents=True)
        (root / "proc" / process / "ns/mnt").symlink_to(name)
    (root / "proc/4711/exe").symlink_to(program)
    return root


def test_programs_lie_beside_the_one_that_runs(tmp_path: Path) -> None:
    root = proc(tmp_path, "/usr/lib/postgresql/15/bin/postgres (deleted)")  # upgraded since it started
    assert programs_of(PID, root) == Path("/usr/lib/postgresql/15/bin")


def test_programs_of_an_emulated_server_are_its_own(tmp_path: Path) -> None:
    root = proc(tmp_path, "/usr/bin/qemu-aarch64-static")
    (root / "proc/4711/cmdline").write_bytes(
        b"/usr/bin/qemu-aarch64-static\0/opt/pg/bin/postgres\0-D\0/data\0"
    )
    assert programs_of(PID, root) == Path("/opt/pg/bin")


def test_programs_of_a_container_are_out_of_reach(tmp_path: Path) -> None:
    root = proc(tmp_path, "/no/such/bin/postgres", namespace="mnt:[2]")
    assert programs_of(PID, root) == Unknown(
        "process 4711 runs in a container, where /no/such/bin/postgres is another file"
    )


def test_a_service_with_a_private_tmp_has_the_same_programs(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.touch()
    assert programs_of(PID, proc(tmp_path, program, namespace="mnt:[2]")) == tmp_path


def test_a_process_that_may_not_be_looked_at_is_out_of_reach(tmp_path: Path) -> None:
    assert programs_of(PID, tmp_path) == Unknown(
        "could not see which program process 4711 runs: No such file or directory"
    )


def test_a_server_elsewhere_is_out_of_reach() -> None:
    assert programs_of(unknown("no process here has the backend's process id 7", "/proc")) == Unknown(
        "it is not proven to run on this host: no process here has the backend's process id 7"
    )
