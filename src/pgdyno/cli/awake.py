"""``pgdyno awake``: keep idle CPUs awake until terminated."""

from __future__ import annotations

import shutil
import signal
import sys
import time

import click

from pgdyno.cli.output import echo, print_file

_UNIT = """\
# pgdyno: keep idle CPUs awake with processes of the lowest priority.
# Install as /etc/systemd/system/pgdyno-awake.service, then:
#   systemctl daemon-reload && systemctl enable --now pgdyno-awake
# Undo: systemctl disable --now pgdyno-awake, delete the file, systemctl daemon-reload
[Unit]
Description=pgdyno: keep idle CPUs awake

[Service]
ExecStart={command} awake
KillMode=mixed

[Install]
WantedBy=multi-user.target
"""
_FOR_A_WHILE_S = 3600.0


@click.command(
    name="awake",
    epilog="\b\nExamples:\n  pgdyno awake\n  pgdyno awake --unit > /etc/systemd/system/pgdyno-awake.service",
)
@click.option("--unit", "is_unit", is_flag=True, help="Print a systemd unit for this, and exit.")
def command(*, is_unit: bool) -> None:
    """Keep idle CPUs awake until Ctrl-C.

    For machines on which waking a CPU takes long and the kernel cannot poll. Needs root: a process of the
    lowest priority runs on each CPU, in a control group that yields to all others. Refused in a container,
    under a CPU quota, on cores with SMT, on instance types with CPU credits, and where it does not shorten
    wake-ups. It costs power, or CPU time of the hypervisor's host. No plan contains it.
    """
    from pgdyno.host.files.tree import Tree
    from pgdyno.host.probing.spinners import Spinners
    from pgdyno.measure.awake import staying_awake
    from pgdyno.measure.view.awake_sentence import awake_sentence
    from pgdyno.postgres.process.local_machine import online_cpus

    if is_unit:
        print_file(_UNIT.format(command=shutil.which("pgdyno") or f"{sys.executable} -P -m pgdyno"))
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # systemd stops units with SIGTERM
    with staying_awake(Spinners(Tree(), online_cpus())) as awake:
        echo(f"{awake_sentence(awake)}; stop with Ctrl-C")
        try:
            while True:
                time.sleep(_FOR_A_WHILE_S)
        except KeyboardInterrupt:
            return
