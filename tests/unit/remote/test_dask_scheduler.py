"""Addresses of a Dask scheduler: within the machine, or with the certificates of both sides."""

from __future__ import annotations

import sys
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest

from pgdyno.base.errors import PgdynoError, RefusedError, UsageError
from pgdyno.remote import dask_scheduler as schedulers
from pgdyno.remote.dask_scheduler import TlsFiles, dask_scheduler

OURS = (Path("ca.pem"), Path("me.pem"), Path("me.key"))


@pytest.fixture(autouse=True)
def _without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes beyond the address finds no Dask, and connects to nothing."""
    monkeypatch.setitem(sys.modules, "distributed", None)


def refused(address: str, tls: TlsFiles | None = None) -> PgdynoError:
    with (
        pytest.raises((UsageError, RefusedError)) as caught,
        dask_scheduler(address, tls),
    ):
        pytest.fail("there is no scheduler")
    return caught.value


@pytest.mark.parametrize(
    "address",
    ["tcp://127.0.0.1:8786", "tcp://127.255.0.9:1", "tcp://localhost:8786", "tcp://[::1]:8786"],
)
def test_an_address_of_this_machine_is_taken(address: str) -> None:
    error = refused(address)
    assert error.message == (
        "workers on other machines require the package distributed, which is not installed"
    )
    assert error.hint == "pip install 'pgdyno[fleet]', here and on the machines"


@pytest.mark.parametrize(
    "host",
    ["10.0.0.1", "db1", "localhost.example", "0.0.0.0", "127.1", "2130706433", "[::]", "[::ffff:10.0.0.1]"],  # noqa: S104
)
def test_tcp_to_anywhere_else_is_refused_with_the_ways_that_work(host: str) -> None:
    error = refused(f"tcp://{host}:8786")
    if isinstance(error, UsageError):  # a mapped address has dots in brackets
        assert error.message == f'"tcp://{host}:8786" is not an address of a Dask scheduler'
        return
    assert str(error) == (
        f"tcp://{host}:8786 is refused: anyone with access to it could run programs on all workers, "
        "and here\n"
        "DETAIL:  Dask sends Python objects, and without TLS it does not authenticate clients\n"
        f"HINT:  use TLS (tls://{host}:8786 with --tls CA CERT KEY), or a tunnel: "
        f"ssh -N -L 8786:127.0.0.1:8786 {host}, and tcp://127.0.0.1:8786"
    )


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:8786",
        "inproc://127.0.0.1/1/1",
        "ws://127.0.0.1:8786",
        "ucx://127.0.0.1:8786",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:8786/x",
        "tcp://db1:1@127.0.0.1:8786",
        "tcp://127.0.0.1@db1:8786",
        "tcp://127.0.0.1:8786\n",
        "tls://",
        "",
    ],
)
def test_anything_else_is_no_address(address: str) -> None:
    error = refused(address)
    assert error.message == f'"{address}" is not an address of a Dask scheduler'
    assert error.hint == "write tcp://127.0.0.1:PORT for this machine, tls://HOST:PORT for another machine"


def test_tls_takes_our_certificate_and_tcp_takes_none() -> None:
    error = refused("tls://db1:8786")
    assert error.message == "tls://db1:8786 requires certificates"
    assert error.hint == (
        "use --tls CA CERT KEY with tls://…, where both sides show a certificate; not with tcp://…"
    )
    assert refused("tcp://127.0.0.1:1", OURS).message == "tcp://127.0.0.1:1 does not accept certificates"
    assert "is not installed" in refused("tls://db1:8786", OURS).message


@pytest.mark.parametrize("listens", ["tcp://127.0.0.1:1", "tls://10.0.0.1:1", "tls://0.0.0.0:1", "tls://:1"])
def test_who_listens_within_the_machine_or_by_tls_is_closed(listens: str) -> None:
    with does_not_raise():
        schedulers._require_closed("the worker", "tcp://127.0.0.1:1", listens, None)


@pytest.mark.parametrize("listens", ["tcp://10.0.0.1:1", "tcp://0.0.0.0:1", "tcp://:1", "ws://127.0.0.1:1x"])
def test_who_listens_to_the_network_is_refused(listens: str) -> None:
    with pytest.raises(RefusedError) as caught:
        schedulers._require_closed("the worker", "tcp://127.0.0.1:1", listens)
    assert caught.value.message == f"the worker listens on the network without TLS: {listens}"
