"""The table of a cell's hosts, and the steps below it."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.remote.cells.test_findings import LOAD, SERVER, with_facts

from pgdyno.model.cells.check import Trouble
from pgdyno.remote.cell_text import cell_text
from pgdyno.remote.cells.findings import judged

HEALTHY = """\
                      db1 (server)                                client1 (load)
reached as            ada@db1, 10.0.0.1                           ada@db1, 10.0.0.1
round trip, by ssh    1 ms                                        1 ms
clock offset          +1 ms ± 500 µs                              +1 ms ± 500 µs
clock synchronised    yes                                         yes
CPUs                  4                                           4
memory                8 GB                                        8 GB
kernel                6.1.0 x86_64                                6.1.0 x86_64
Python                3.11.2                                      3.11.2
root privileges       yes                                         yes
free disk             1 GB in /tmp                                1 GB in /tmp
PostgreSQL            17.2 in /usr/lib/postgresql/17/bin          –
pgdyno                1.2: /usr/bin/pgdyno                        –
CPU wake-up           50.0 µs idle, 5.0 µs kept busy              50.0 µs idle, 5.0 µs kept busy
round trip to server  –                                           100 µs
sends to server       –                                           954 MB/s
receives from server  –                                           954 MB/s

The cell can be used.
"""


def test_a_healthy_cell_is_a_table_and_an_answer() -> None:
    assert (
        cell_text(judged([SERVER, LOAD], "x86_64", "1.2"), 110).replace("\N{NO-BREAK SPACE}", " ") == HEALTHY
    )


def test_this_machine_is_not_reached_by_ssh() -> None:
    said = cell_text(judged([with_facts(SERVER, address=None), LOAD], "x86_64", None), 110)
    lines = said.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert "reached as            ada@db1, this machine                       ada@db1, 10.0.0.1" in lines
    assert "round trip, by ssh    –                                           1 ms" in lines
    assert "clock offset          –                                           +1 ms ± 500 µs" in lines
    assert "pgdyno                –                                           –" in lines


def test_a_host_whose_address_nobody_tells_is_not_taken_for_this_machine() -> None:
    said = cell_text(judged([SERVER, with_facts(LOAD, address="")], "x86_64", None), 110)
    lines = said.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    (reached,) = (line for line in lines if line.startswith("reached as"))
    (clock,) = (line for line in lines if line.startswith("clock offset"))
    assert reached.endswith("  ada@db1, unknown address")
    assert clock.endswith("+1 ms ± 500 µs")


def test_a_server_without_pgdyno_is_shown_with_the_next_step() -> None:
    said = cell_text(judged([with_facts(SERVER, pgdyno=None), LOAD], "x86_64", "1.2"), 110)
    assert "\npgdyno                none found                                  –\n" in said
    assert "1. db1: warning: commands with --cell cannot run there" in said
    assert said.endswith("The cell can be used.\n")


def test_obstacles_have_their_next_steps_below() -> None:
    lost = replace(LOAD, answer=Trouble("it does not answer", "see by hand: ssh client1"), network=None)
    said = cell_text(judged([SERVER, lost], "x86_64", "1.2"), 110)
    assert said.endswith(
        "Next steps\n1. client1: it does not answer\n   → see by hand: ssh client1\n\n"
        "The cell cannot be used: 1 obstacle.\n"
    )


def test_many_hosts_are_several_tables() -> None:
    said = cell_text(judged([SERVER, *([LOAD] * 4)], "x86_64", "1.2"), 110)
    assert said.count("reached as") == 2
    assert max(map(len, said.splitlines())) <= 110
