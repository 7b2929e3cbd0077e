"""A fleet on Dask workers in processes of their own, which are killed, as their scheduler is."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.dask_cluster import NO_DASK, DaskProcesses, dask_processes
from tests.fix_servers import wait_until
from tests.programs.results.fleets.made_answers import Made

from pgdyno.base.errors import RefusedError, RemoteHostError
from pgdyno.model.experiments.fleet import FleetOrder, MachineOrder
from pgdyno.remote.dask_scheduler import TlsFiles, dask_scheduler
from pgdyno.results.fleets.run_fleet import (
    MachineOutcome,
    fleet_directory,
    from_workers,
    measure_on_worker,
    run_fleet,
)

pytest.importorskip("distributed", reason=NO_DASK)
pytestmark = [
    pytest.mark.usefixtures("own_home"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Dask leaves a broken connection to Python
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ORDER = FleetOrder("f", MachineOrder(("compare", "a", "b"), 60.0), ("db1", "db2"))
NAMES = [ORDER.bundle_name(machine) for machine in ORDER.machines]


@pytest.fixture
def dask() -> Iterator[DaskProcesses]:
    with dask_processes() as processes:
        yield processes
    gc.collect()  # what Dask has left, so that it is no other test's


@pytest.fixture
def made(dask: DaskProcesses) -> Made:
    return Made(dask.home)


def run(address: str, made: Made, tls: TlsFiles | None = None) -> list[MachineOutcome]:
    with dask_scheduler(address, tls) as scheduler:
        answers = from_workers(ORDER, scheduler, lambda _: None, made)
        return run_fleet(ORDER, ORDER.machines, answers, lambda _: None)


@contextmanager
def meanwhile(
    condition: Callable[[], object], do: Callable[[], None], again_s: float | None = None
) -> Iterator[None]:
    """Do something once a condition holds, beside what is in the block; again if that goes on."""
    ended = threading.Event()

    def watch() -> None:
        wait_until(lambda: bool(condition()), 200)
        do()
        while again_s is not None and not ended.wait(again_s):
            do()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def kept() -> list[str]:
    return sorted(one.name for one in fleet_directory(ORDER).glob("*.zip"))


def test_a_task_goes_to_the_worker_of_its_machine_whenever_that_comes(
    dask: DaskProcesses, made: Made
) -> None:
    dask.scheduler()
    dask.worker("db1")
    made.answer("db1", 0)
    made.answer("db2", 1)
    said: list[str] = []

    def say(words: str) -> None:
        said.append(words)
        if words == "1 to go; waiting for workers with these resources: db2" and said.count(words) == 1:
            dask.worker("db2")

    with dask_scheduler(dask.address, None) as scheduler:
        outcomes = run_fleet(ORDER, ORDER.machines, from_workers(ORDER, scheduler, say, made), say)
    assert [one.bundle and one.bundle.name for one in outcomes] == NAMES
    assert kept() == NAMES
    (first,), (second,) = made.attempts("db1"), made.attempts("db2")
    assert len({first, second, os.getpid()}) == 3


def test_the_answer_of_a_killed_worker_is_made_again_by_dask(dask: DaskProcesses, made: Made) -> None:
    dask.scheduler()
    dask.worker("db1")
    dask.worker("db2")
    made.answer("db1", 0)
    dask.await_workers(2)
    made.answer("db2", 1)
    outcomes = run(dask.address, replace(made, killed="db2"))
    assert [one.reason for one in outcomes] == [None, None]
    assert kept() == NAMES
    first, second = made.attempts("db2")
    assert first != second
    assert len(made.attempts("db1")) == 1


def test_an_interrupted_run_drops_its_tasks_and_the_next_one_leaves_out_what_is_done(
    dask: DaskProcesses, made: Made
) -> None:
    dask.scheduler()
    dask.worker("db1")
    dask.worker("db2")
    made.answer("db1", 0)
    interrupt = partial(os.kill, os.getpid(), signal.SIGINT)
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" has it ignored
    try:
        # Python loses an interrupt that comes in a finaliser; people press the keys again.
        interrupted = meanwhile(lambda: kept() and made.attempts("db2"), interrupt, again_s=20)
        with pytest.raises(KeyboardInterrupt), interrupted:
            run(dask.address, made)
    finally:
        signal.signal(signal.SIGINT, former)
    wait_until((dask.home / "db2.dropped").exists)
    made.answer("db2", 1)
    outcomes = run(dask.address, made)
    assert [one.reason for one in outcomes] == [None, None]
    assert kept() == NAMES
    assert len(made.attempts("db1")) == 1


def test_a_scheduler_that_is_killed_ends_the_run_and_its_tasks(dask: DaskProcesses, made: Made) -> None:
    scheduler = dask.scheduler()
    dask.worker("db1")
    dask.worker("db2")
    made.answer("db1", 0)
    killed = meanwhile(lambda: kept() and made.attempts("db2"), scheduler.kill)
    with pytest.raises(RemoteHostError) as caught, killed:
        run(dask.address, made)
    assert str(caught.value) == (
        f"lost the connection to the Dask scheduler at {dask.address}\n"
        "DETAIL:  answers received earlier are kept\n"
        "HINT:  check that it is running, and repeat the command"
    )
    assert kept() == NAMES[:1]
    wait_until((dask.home / "db2.dropped").exists)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a worker can only be root's if the tests are")
def test_a_worker_of_root_measures_nothing(dask: DaskProcesses) -> None:
    dask.scheduler()
    dask.worker("db1", is_root=True)
    assert refused(dask) == (
        "the worker must not run as root: anyone with access to its scheduler can run programs as its user"
    )


def test_a_worker_that_listens_to_the_network_measures_nothing(dask: DaskProcesses) -> None:
    """As Dask's does by default; its address is that by which it has reached the scheduler."""
    dask.scheduler()
    dask.worker("db1", host="0.0.0.0")  # noqa: S104
    assert refused(dask).startswith("the worker listens on the network without TLS: tcp://0.0.0.0:")


def refused(dask: DaskProcesses) -> str:
    """Return why a worker does not measure."""
    order = replace(ORDER, machines=("db1",))
    with dask_scheduler(dask.address, None) as scheduler:
        answers = from_workers(order, scheduler, lambda _: None, measure_on_worker)
        (outcome,) = run_fleet(order, order.machines, answers, lambda _: None)
    assert outcome.bundle is None
    return str(outcome.reason)


def test_a_scheduler_that_listens_to_the_network_is_refused(dask: DaskProcesses, made: Made) -> None:
    dask.scheduler(host="0.0.0.0")  # noqa: S104 — as Dask's does by default
    with pytest.raises(RefusedError) as caught:
        run(dask.address, made)
    assert caught.value.message.startswith("the scheduler listens on the network without TLS: tcp://")
    assert caught.value.hint == (
        "make it listen only on 127.0.0.1, or use TLS: docs/guides/fleets.md has the commands"
    )


def test_with_tls_both_sides_show_a_certificate(
    dask: DaskProcesses, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = dask.home / "ca.pem"
    certificate("ca", dask.home)
    for name in ("scheduler", "db1", "db2", "controller"):
        certificate(name, dask.home, "-CA", str(authority), "-CAkey", str(dask.home / "ca.key"))
    certificate("stranger", dask.home)

    def options(name: str) -> list[str]:
        own = ("--tls-cert", str(dask.home / f"{name}.pem"), "--tls-key", str(dask.home / f"{name}.key"))
        return ["--tls-ca-file", str(authority), *own]

    dask.scheduler(*options("scheduler"))
    dask.address = f"tls://127.0.0.1:{dask.port}"
    dask.worker("db1", *options("db1"))
    dask.worker("db2", *options("db2"), host="0.0.0.0")  # noqa: S104
    made.answer("db1", 0)
    made.answer("db2", 1)
    ours = (authority, dask.home / "controller.pem", dask.home / "controller.key")
    assert [one.reason for one in run(dask.address, made, tls=ours)] == [None, None]
    monkeypatch.setattr("pgdyno.remote.dask_scheduler._CONNECT_S", 2.0)
    theirs = (authority, dask.home / "stranger.pem", dask.home / "stranger.key")
    with pytest.raises(RemoteHostError, match="could not connect to a Dask scheduler at tls://"):
        run(dask.address, made, tls=theirs)
    with pytest.raises(RemoteHostError, match="could not connect to a Dask scheduler at tcp://"):
        run(f"tcp://127.0.0.1:{dask.port}", made)


def certificate(name: str, directory: Path, *signer: str) -> None:
    """Make a key and a certificate, which it signs itself unless another one does."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", f"/CN={name}", *signer),
            *("-keyout", str(directory / f"{name}.key"), "-out", str(directory / f"{name}.pem")),
        ],
        check=True,
        capture_output=True,
    )
    (directory / f"{name}.key").chmod(0o644)  # for the workers' user, in a directory of its own


def test_an_address_at_which_no_scheduler_answers_is_told(
    monkeypatch: pytest.MonkeyPatch, made: Made
) -> None:
    monkeypatch.setattr("pgdyno.remote.dask_scheduler._CONNECT_S", 0.5)
    with pytest.raises(RemoteHostError) as caught:
        run("tcp://127.0.0.1:1", made)
    assert caught.value.message == "could not connect to a Dask scheduler at tcp://127.0.0.1:1"
    assert caught.value.hint == "docs/guides/fleets.md has the commands to start one"
