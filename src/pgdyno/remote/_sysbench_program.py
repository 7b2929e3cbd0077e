"""Standalone program that issues load with this host's sysbench, and then removes everything it created.

It is sent like _load_program.py and uses pgdyno-driver's protocol: after a line of JSON with the script that
wraps sysbench's own, its input is a job, then commands; its output is events. Each arm has its own unmodified
sysbench process. All are stopped with SIGSTOP, except during their turns.
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
    send_logs,
    working_in,
    write_line,
)
from pgdyno.remote._own_programs import owner_of

SYSBENCH = "sysbench"
NOT_INSTALLED = f"{SYSBENCH} is not installed on this host: "  # parsed by the controller
VERSION_LIMIT_S = 10.0
CONNECT_LIMIT_S, CONNECT_POLL_S = 60.0, 0.02
STOP_LIMIT_S = 15.0
DISCONNECTED = "the controller disconnected"
SHOWN = 3  # last lines of its output
CLEAN_STATUSES = (0, -signal.SIGTERM)


class SysbenchError(Exception):
    """An error to report to the controller."""


class ArmSysbench:
    """sysbench for one arm. The directory is common to all arms; file names contain the arm's number."""

    def __init__(self, program: str, arm: dict[str, Any], given: dict[str, Any]) -> None:
        """Start sysbench. Its logs are ``NUMBER.THREAD`` in the working directory."""
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
        """Return the files of its log, one per thread."""
        return list(self.output.parent.glob(f"{self.number}.*"))

    def await_first(self) -> None:
        """Wait until all clients are connected and one has completed a transaction; then stop sysbench."""
        ends = time.monotonic() + CONNECT_LIMIT_S
        while not any(path.stat().st_size for path in self.log_names()):
            self.require_running()
            if time.monotonic() > ends:
                raise self.failed(f"completed no transaction within {CONNECT_LIMIT_S:.0f} s")
            if select.select([sys.stdin], [], [], CONNECT_POLL_S)[0]:
                sys.exit(DISCONNECTED)  # no command is due yet: the input has ended
        self.process.send_signal(signal.SIGSTOP)

    def take_turn(self, arm: int, slice_s: float) -> dict[str, Any]:
        """Run for ``slice_s``, which is equal on all hosts; return the event that reports the turn."""
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
        """Terminate sysbench cleanly, to complete its log."""
        self.require_running()
        self.process.send_signal(signal.SIGTERM)
        self.process.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_LIMIT_S)
        if self.process.poll() not in CLEAN_STATUSES:
            raise self.failed("did not exit cleanly")

    def kill(self) -> None:
        """Kill sysbench if it still runs."""
        self.process.kill()
        self.process.wait()

    def require_running(self) -> None:
        """Raise SysbenchError if sysbench has exited."""
        if self.process.poll() is not None:
            status = self.process.returncode
            how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
            raise self.failed(f"{how} before it was stopped")

    def failed(self, why: str) -> SysbenchError:
        """Return an error with sysbench's last lines of output."""
        words = [line for line in self.output.read_text(errors="replace").splitlines() if line.strip()]
        return SysbenchError(
            f"sysbench on {self.host} {why} (server: {self.name})", "\n".join(words[-SHOWN:])
        )


def cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process, by the clock ID of clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def installed() -> str:
    """Return sysbench's path; exit if there is none, or if this user is root and others can replace it."""
    found = shutil.which(SYSBENCH)
    if found is None:
        sys.exit(f"{NOT_INSTALLED}it is not on the PATH ({os.environ.get('PATH', os.defpath)})")
    program = Path(os.path.realpath(found))
    try:
        user = owner_of(program)
    except OSError as error:
        sys.exit(f"{SYSBENCH} {NOT_RUN}{error.strerror}")
    if user != os.geteuid():
        sys.exit(f"{SYSBENCH} {NOT_RUN}you are root, and user {user} can replace {program}")
    return str(program)


def version(program: str) -> str:
    """Return the first line of sysbench's version; exit with its last line of output if it does not run."""
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=VERSION_LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"{SYSBENCH} {NOT_RUN}{getattr(error, 'strerror', None) or error}")
    lines = done.stdout.decode(errors="replace").splitlines() or ["no output"]
    if done.returncode != 0:  # for example a missing library: that message also starts with its name
        sys.exit(f"{SYSBENCH} {NOT_RUN}{lines[-1][:300]}")
    return lines[0][:80]


def conduct(loads: list[ArmSysbench]) -> None:
    """Execute commands until the stop command; exit if the input ends before."""
    for line in iter(sys.stdin.buffer.readline, b""):
        command = json.loads(line)
        if command["do"] == "stop":
            for load in loads:
                load.stop()
            send({"event": "phase", "arms": []})
            send({"event": "end"})
            return
        for arm in command["order"]:
            time.sleep(command["delay_s"])
            send(loads[arm].take_turn(arm, command["slice_s"]))
        send({"event": "turns-ended"})
    sys.exit(DISCONNECTED)


def issue(program: str, place: Path, header: dict[str, Any]) -> None:
    """Start sysbench for each arm of the job, and run their turns."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(DISCONNECTED)
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
        send({"event": "ready"})
        conduct(loads)
    except SysbenchError as error:
        message, words = error.args
        send({"event": "error", "message": message, "detail": words or None})
        sys.exit(message)
    finally:
        for load in loads:
            load.kill()


def send(event: dict[str, Any]) -> None:
    """Write an event to the output."""
    write_line(json.dumps(event))


def main(greeting: str) -> None:
    """Greet; print sysbench's version, or run a job and send its logs. The start command set the alarm."""
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    place = os.environ.get("TMPDIR") or TEMPORARY
    with alone():
        header, program = json.loads(sys.stdin.buffer.readline()), installed()
        if header["says_version"]:
            found = version(program)
            write_line(greeting)
            write_line(found)
            return
        with working_in(place, SYSBENCH):
            own = tempfile.TemporaryDirectory(prefix=f"{greeting}-", dir=place)
        with own as directory:
            write_line(greeting)
            issue(program, Path(directory), header)
            send_logs(Path(directory))
