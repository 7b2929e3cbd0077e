"""Commands with ``--cell``, carried to the server's host: a namespace of this machine with an sshd."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.fix_cell import NamespaceCell, run
from tests.fix_home import home_below
from tests.fix_namespaces import running_cell
from tests.fix_servers import RealServer, running_server, wait_until
from tests.integration.journal_support import pg_ctl_restart, snapshot, under_pg_ctl

from pgdyno import __version__

pytestmark = [pytest.mark.root, pytest.mark.server, pytest.mark.usefixtures("own_home")]
rare = pytest.mark.skipif("PGDYNO_CELLS" not in os.environ, reason="one is enough: make test-cells")

INSTALLED = """#!/bin/sh
export PGDYNO_HOME={home} PGDYNO_AS_BOOTED=1 PYTHONPATH={path}
exec {python} -m pgdyno "$@"
"""

# Restarts the server when it may: an apply can be ended in the middle until then. The server stays outside of
# the host's namespaces, where its processes would count as the host's.
RESTART = """#!/bin/sh
touch {directory}/asked
while [ ! -e {directory}/allowed ]; do sleep 0.1; done
exec nsenter --target {outside} --net --mount --uts {restart}
"""


@pytest.fixture(scope="module")
def there() -> Iterator[Path]:
    """The home of the pgdyno on the server's host."""
    with home_below(Path(tempfile.gettempdir())) as path:
        yield path


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory, there: Path) -> Iterator[NamespaceCell]:
    """The server's host with a pgdyno of its own, and a load host."""
    with running_cell(tmp_path_factory.mktemp("cell"), {"db1": "64m", "client1": "512m"}) as running:
        path = Path(__file__).parents[3] / "src"
        running["db1"].plant("pgdyno", INSTALLED.format(home=there, path=path, python=sys.executable))
        yield running


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A PostgreSQL 18 on the server's host: reached by its socket."""
    with running_server(pg18_bin) as started, under_pg_ctl(started):
        yield started


@pytest.fixture(autouse=True)
def _leaves_nothing(cell: NamespaceCell) -> Iterator[None]:
    """Fail a test after which something is left on the host or here."""
    yield
    db1 = cell["db1"]
    wait_until(lambda: len(db1.pids()) == 1 and cell.own_pids() == ())  # the sshd that listens
    assert db1.temporary_files() == []


def hosts_file(cell: NamespaceCell, directory: Path, more: str = "", known: str | None = None) -> str:
    tables = {
        "db1": f'role = "server"\naddress = "{cell["db1"].address}"\n{more}',
        "client1": 'role = "load"',
    }
    return str(cell.file(directory, tables, known=None if known is None else {"db1": known}))


def started(cell: NamespaceCell, directory: Path, *words: str) -> subprocess.Popen[str]:
    return cell.pgdyno(*words, "--cell", hosts_file(cell, directory))


def refusal(cell: NamespaceCell, file: str, *words: str) -> str:
    """Return the error that a command ends with; it prints nothing else."""
    said, errors = cell.pgdyno(*(words or ("status",)), "--cell", file).communicate(timeout=200)
    assert said == ""
    assert errors.startswith("pgdyno: ERROR:  "), errors
    return errors


def test_a_plan_is_applied_shown_and_reverted_on_the_servers_host(
    cell: NamespaceCell, server: RealServer, tmp_path: Path, there: Path, own_home: Path
) -> None:
    before = snapshot(server)

    def document(*words: str) -> dict[str, dict[str, list[object]]]:
        process = started(cell, tmp_path, *words, "--dsn", server.dsn, "--json")
        said, errors = process.communicate(timeout=200)
        assert (process.returncode, errors) == (0, ""), errors
        parsed: dict[str, dict[str, list[object]]] = json.loads(said)
        return parsed

    assert document("inspect")["server"]["non_default_settings"]
    assert document("apply", "--lever", "work_mem", "--ram", "8GB", "--cpus", "2")["result"]
    assert list(there.glob("journal/**/*"))
    assert not list(own_home.glob("journal/**/*"))
    assert '"work_mem"' in json.dumps(document("status"))
    document("revert")
    assert snapshot(server) - before == []


def test_the_commands_in_a_hint_can_be_typed_where_the_user_is(cell: NamespaceCell, tmp_path: Path) -> None:
    file = hosts_file(cell, tmp_path)
    said = refusal(cell, file, "run", "nothing", "--embedded")
    assert said.endswith(f"; see pgdyno run --cell {file} --list\n")


@contextmanager
def applying(cell: NamespaceCell, server: RealServer, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Start an apply that waits for its restart; at the end let that happen, and wait for the apply's end."""
    restart = directory / "restart"
    restart.write_text(
        RESTART.format(directory=directory, outside=os.getpid(), restart=shlex.join(pg_ctl_restart(server)))
    )
    restart.chmod(0o755)
    words = ("apply", "--dsn", server.dsn, "--ram", "8GB", "--lever", "shared_buffers", "--allow-restart")
    process = started(cell, directory, *words, "--restart-command", str(restart))
    try:
        wait_until((directory / "asked").exists, 60)
        yield process
    finally:
        (directory / "allowed").touch()
        process.kill()
        process.communicate()
        wait_until(lambda: len(cell["db1"].pids()) == 1, 60)


def watching(cell: NamespaceCell) -> Callable[[], bool]:
    """Return whether the program that runs an apply there still watches: it has interrupted it otherwise."""
    paths = [Path(f"/proc/{pid}") for pid in cell["db1"].pids()]
    [carrier] = [path for path in paths if b"pgdyno\0cell\0carried" in (path / "cmdline").read_bytes()]
    threads = len(list((carrier / "task").iterdir()))
    return lambda: len(list((carrier / "task").iterdir())) == threads


def test_an_apply_that_is_killed_here_is_undone_there(
    cell: NamespaceCell, server: RealServer, tmp_path: Path
) -> None:
    before = snapshot(server)
    with applying(cell, server, tmp_path) as process:
        is_watching = watching(cell)
        process.kill()
        wait_until(lambda: not is_watching())
    assert snapshot(server) - before == []


@rare
def test_an_apply_whose_controller_is_cut_off_is_undone(
    cell: NamespaceCell, server: RealServer, tmp_path: Path
) -> None:
    before = snapshot(server)
    with applying(cell, server, tmp_path) as process:
        is_watching = watching(cell)
        cell["db1"].link("down")
        try:
            _, errors = process.communicate(timeout=200)
            wait_until(lambda: not is_watching())
        finally:
            cell["db1"].link("up")
    assert process.returncode == 1
    assert errors.endswith(
        "pgdyno: ERROR:  the connection to db1 was lost  (PGD-650)\n"
        "DETAIL:  the command there is interrupted within 15\N{NO-BREAK SPACE}s, and undoes its changes\n"
        f"HINT:  then check what remains: pgdyno status --cell {tmp_path}/hosts.toml\n"
    )
    assert snapshot(server) - before == []


@contextmanager
def traffic(server: RealServer) -> Iterator[None]:
    """Have a session ask the server to sleep again and again: whoever looks sees it in a transaction."""
    is_over = threading.Event()

    def ask() -> None:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            while not is_over.is_set():
                connection.execute("SELECT pg_sleep(0.003)")

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_an_interruption_is_passed_on(cell: NamespaceCell, server: RealServer, tmp_path: Path) -> None:
    with traffic(server):  # a server without any is not watched for long
        process = started(cell, tmp_path, "profile", "--dsn", server.dsn, "--for", "10m")
        assert process.stderr is not None
        warning, step = process.stderr.readline(), process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=200)
    assert (process.returncode, said) == (130, ""), errors
    assert warning == (
        "pgdyno: WARNING:  db1 generates the load itself: profile does not use load hosts yet (client1)\n"
    )
    assert step.endswith("watching the traffic for 600 s\n")
    assert errors.endswith("pgdyno: ERROR:  interrupted  (PGD-800)\n")


PLANTED = {
    "older": '#!/bin/sh\necho "$3"; echo 0.0.9; cat\n',
    "oldest": "#!/bin/sh\necho \"Error: No such command 'carried'.\" >&2; exit 2\n",
    "closed": "",
}
NAMED = 'pgdyno = "/…/pgdyno" in [hosts.db1]'
NOT_BEGUN = {
    "none": (
        f"pgdyno not found on db1  (PGD-650)\nDETAIL:  bash: line 1: {{}}: No such file or directory\n"
        f"HINT:  install pgdyno {__version__} there, or give its path: {NAMED}\n"
    ),
    "closed": (
        "the login user may not run pgdyno on db1  (PGD-650)\n"
        "DETAIL:  bash: line 1: {}: Permission denied\n"
        f"HINT:  permit the user to run it, name another installation ({NAMED}), or log in as another user "
        "(ssh = there)\n"
    ),
    "older": (
        f"db1 has pgdyno 0.0.9, but this is {__version__}  (PGD-650)\n"
        f"HINT:  install the same version on both hosts, or name another installation there: {NAMED}\n"
    ),
    "oldest": (
        "pgdyno on db1 has a different version, which does not accept commands from here  (PGD-650)\n"
        "DETAIL:  Error: No such command 'carried'.\n"
        f"HINT:  install pgdyno {__version__} there, or name another installation: {NAMED}\n"
    ),
}


@pytest.mark.parametrize("program", NOT_BEGUN)
def test_a_pgdyno_that_does_not_begin_there_is_told(
    cell: NamespaceCell, tmp_path: Path, program: str
) -> None:
    path = cell["db1"].directory / "bin" / program
    if program in PLANTED:
        cell["db1"].plant(program, PLANTED[program])
        path.chmod(0o644 if program == "closed" else 0o755)
    said = refusal(cell, hosts_file(cell, tmp_path, f'pgdyno = "{path}"'))
    assert said == f"pgdyno: ERROR:  {NOT_BEGUN[program].format(path)}"


def test_nothing_is_sent_to_a_host_with_an_unknown_key(cell: NamespaceCell, tmp_path: Path) -> None:
    said = refusal(cell, hosts_file(cell, tmp_path, known=""))
    assert said.startswith("pgdyno: ERROR:  db1: its host key is unknown (")
    assert (
        f"HINT:  connect once by hand, and compare the fingerprint before accepting it: ssh -F {tmp_path}"
        in said
    )


@rare
def test_nothing_is_sent_to_a_host_with_a_changed_key(cell: NamespaceCell, tmp_path: Path) -> None:
    said = refusal(cell, hosts_file(cell, tmp_path, known=cell["client1"].public_key))
    assert said.startswith("pgdyno: ERROR:  db1: its host key has changed: it shows SHA256:")


@rare
def test_a_carried_bench_has_its_load_from_the_load_host(cell: NamespaceCell, tmp_path: Path) -> None:
    file = hosts_file(cell, tmp_path)
    inside = ("nsenter", "--target", str(cell["db1"].pids()[0]), "--mount")
    run(*inside, "mount", "--bind", str(tmp_path / "ssh_config"), "/etc/ssh/ssh_config")  # its own ssh
    try:
        asked = ("bench", "pgbench-select", "--scale", "1", "--embedded", "--blocks", "1", "--json")
        said, errors = cell.pgdyno(*asked, "--cell", file).communicate(timeout=120)
    finally:
        run(*inside, "umount", "/etc/ssh/ssh_config")
    assert said, errors
    notes = json.loads(said)["notes"]
    assert [note for note in notes if note.startswith('load from "client1" over the network')]
