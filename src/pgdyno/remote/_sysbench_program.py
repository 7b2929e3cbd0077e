"""Standalone program that lets this host's sysbench issue load, and takes everything away again.

It is sent as _load_program.py is, and speaks pgdyno-driver's language: after a line of JSON with the script
around sysbench's own, a job comes in, then commands, and events go out. Each arm has a sysbench of its own,
unmodified; all are stopped by a signal but the one whose turn it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pgdyno.remote._load_program import (
    KEPT_VARIABLES,
    NOT_RUN,
    TEMPORARY,
    alone,
    begin_child,
    end,
    say,
    send_logs,
    working_in,
)
from pgdyno.remote._own_programs import owner_of

SYSBENCH = "sysbench"
NOT_INSTALLED = f"{SYSBENCH} is not installed on this host: "  # the controller looks for it
VERSION_LIMIT_S = 10.0
CONNECT_LIMIT_S, CONNECT_POLL_S = 60.0, 0.02
STOP_LIMIT_S = 15.0
NOBODY = "nobody is there any more"
SHOWN = 3  # last lines of its output
CLEAN_STATUSES = (0, -signal.SIGTERM)


class SysbenchError(Exception):
    """An error that is told to the controller."""


class ArmSysbench:
    """sysbench for one arm. Its files have the arm's number in their names: the directory is for all."""

    def __init__(self, program: str, arm: dict[str, Any], given: dict[str, Any]) -> None:
        """Start it. Its log is ``NUMBER.THREAD`` in the working directory."""
        self.name, self.number, self.host = arm["name"], arm["log"], given["host"]
        self.output = given["place"] / f"output-{self.number}"
        ours = os.getpid()
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [program, str(given["wrapper"]), *arm["options"]], cwd=str(given["place"]),
                env={**given["environment"], **arm["environment"]}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, preexec_fn=lambda: begin_child(ours, given["cpus"]),  # noqa: PLW1509
            )  # fmt: skip

    def log_names(self) -> list[Path]:
        """Return the files of its log."""
        return list(self.output.parent.glob(f"{self.number}.*"))

    def await_first(self) -> None:
        """Wait until all clients are connected and one has completed a transaction; let it rest then."""
        ends = time.monotonic() + CONNECT_LIMIT_S
        while not any(path.stat().st_size for path in self.log_names()):
            self.require_running()
            if time.monotonic() > ends:
                raise self.failed(f"completed no transaction within {CONNECT_LIMIT_S:.0f} s")
            if select.select([sys.stdin], [], [], CONNECT_POLL_S)[0]:
                sys.exit(NOBODY)  # nothing is asked of it yet: that is the end of its input
        self.process.send_signal(signal.SIGSTOP)

    def take_turn(self, arm: int, slice_s: float) -> dict[str, Any]:
        """Let it work for a time; return the event that tells of it. It is as long on all hosts."""
        self.require_running()
        start_ns, ends, before_ns = time.time_ns(), time.monotonic() + slice_s, cpu_ns(self.process.pid)
        self.process.send_signal(signal.SIGCONT)
        time.sleep(max(0.0, ends - time.monotonic()))
        self.process.send_signal(signal.SIGSTOP)
        stopped_ns = time.time_ns()
        self.require_running()
        end_ns = start_ns + int(slice_s * 1e9)
        used_ns = max(0, cpu_ns(self.process.pid) - before_ns)
        return {
            "event": "slice", "arm": arm, "start_ns": start_ns, "end_ns": end_ns,
            "drained_ns": max(end_ns, stopped_ns), "server_cpu_ns": [], "client_cpu_ns": used_ns,
        }  # fmt: skip

    def stop(self) -> None:
        """End it, so that its log is complete."""
        self.require_running()
        self.process.send_signal(signal.SIGTERM)
        self.process.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_LIMIT_S)
        if self.process.poll() not in CLEAN_STATUSES:
            raise self.failed("did not end cleanly")

    def kill(self) -> None:
        """Kill it if it still runs."""
        self.process.kill()
        self.process.wait()

    def require_running(self) -> None:
        """Raise SysbenchError if it has ended."""
        if self.process.poll() is not None:
            status = self.process.returncode
            by = f"by signal {-status}" if status < 0 else f"with status {status}"
            raise self.failed(f"ended {by} before it was stopped")

    def failed(self, why: str) -> SysbenchError:
        """Return an error with its last words."""
        words = [line for line in self.output.read_text(errors="replace").splitlines() if line.strip()]
        return SysbenchError(
            f"sysbench on {self.host} {why} (server: {self.name})", "\n".join(words[-SHOWN:])
        )


def cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process of ours: its clock is numbered as clock(3) says."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def installed() -> str:
    """Return the path of sysbench; leave if there is none, or if we are root and others can exchange it."""
    found = shutil.which(SYSBENCH)
    if found is None:
        sys.exit(f"{NOT_INSTALLED}it is not on the PATH ({os.environ.get('PATH', os.defpath)})")
    program = Path(os.path.realpath(found))
    try:
        user = owner_of(program)
    except OSError as error:
        sys.exit(f"{SYSBENCH} {NOT_RUN}{error.strerror}")
    if user != os.geteuid():
        sys.exit(f"{SYSBENCH} {NOT_RUN}user {user} can exchange {program}, and you are root")
    return str(program)


def version(program: str) -> str:
    """Return the first line of its version; leave, with the last words, if it does not run."""
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=VERSION_LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"{SYSBENCH} {NOT_RUN}{getattr(error, 'strerror', None) or error}")
    said = done.stdout.decode(errors="replace").splitlines() or ["it says nothing"]
    if done.returncode != 0:  # a library is missing, for example: such words begin with its name as well
        sys.exit(f"{SYSBENCH} {NOT_RUN}{said[-1][:300]}")
    return said[0][:80]


def conduct(loads: list[ArmSysbench]) -> None:
    """Obey commands until all are stopped, or the input ends."""
    for line in iter(sys.stdin.buffer.readline, b""):
        command = json.loads(line)
        if command["do"] == "stop":
            for load in loads:
                load.stop()
            tell({"event": "phase", "arms": []})
            tell({"event": "end"})
            return
        for arm in command["order"]:
            time.sleep(command["delay_s"])
            tell(loads[arm].take_turn(arm, command["slice_s"]))
        tell({"event": "turns-ended"})
    sys.exit(NOBODY)


def issue(program: str, place: Path, header: dict[str, Any]) -> None:
    """Start sysbench for each arm of the job, and let them take turns."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(NOBODY)
    job, loads = json.loads(line), []
    wrapper = place / "wrapper"
    wrapper.write_text(header["wrapper"])
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment.update(header["environment"])
    given = {
        "host": header["host"],
        "place": place,
        "wrapper": wrapper,
        "environment": environment,
        "cpus": job["cpus"],
    }
    try:
        for arm in job["arms"]:
            loads.append(ArmSysbench(program, arm, given))
            loads[-1].await_first()
        tell({"event": "ready"})
        conduct(loads)
    except SysbenchError as error:
        message, words = error.args
        tell({"event": "error", "message": message, "detail": words or None})
        sys.exit(message)
    finally:
        for load in loads:
            load.kill()


def tell(event: dict[str, Any]) -> None:
    """Write an event."""
    say(json.dumps(event))


def main(greeting: str) -> None:
    """Greet; say sysbench's version, or run a job and send its logs. The alarm was set as we arrived."""
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    place = os.environ.get("TMPDIR") or TEMPORARY
    with alone():
        header, program = json.loads(sys.stdin.buffer.readline()), installed()
        if header["says_version"]:
            said = version(program)
            say(greeting)
            say(said)
            return
        with working_in(place, SYSBENCH):
            own = tempfile.TemporaryDirectory(prefix=f"{greeting}-", dir=place)
        with own as directory:
            say(greeting)
            issue(program, Path(directory), header)
            send_logs(Path(directory))
