"""The runner on another host: a program sent through ssh that answers questions and leaves no trace."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pgdyno.base.errors import RemoteHostError
from pgdyno.model.cells.cell import CellHost, HostRole, await_greeting
from pgdyno.remote.answers import (
    AcceptAnswer,
    Answer,
    ClockAnswer,
    FactsAnswer,
    Failed,
    ListenAnswer,
    ProbeAnswer,
    TakenAwayAnswer,
    TrialWriteAnswer,
    WakeUpAnswer,
    parse_answer,
)
from pgdyno.remote.channel import Channel, opened_channel
from pgdyno.remote.ssh import program_text, ssh_command, ssh_environment, start_command

RUNNER_MODULES = ("_network_program", "_own_programs", "_runner_program")


class Runner:
    """A runner that has been sent; it may not have started yet."""

    def __init__(self, channel: Channel, greeting: str) -> None:
        """Take the channel to the runner, and its expected greeting."""
        self.has_begun = False
        self._channel, self._greeting = channel, greeting

    def limit(self, limit_s: float) -> None:
        """Set the time limit for all further answers, in seconds from now."""
        self._channel.ends_s = time.monotonic() + limit_s

    def begin(self) -> None:
        """Wait for the greeting. Raises: RemoteHostError, with ssh's messages, if it does not arrive."""
        if not await_greeting(self._channel.line, self._greeting):
            raise RemoteHostError("unexpected output instead of pgdyno's runner's")
        self.has_begun = True

    def clock(self) -> int:
        """Return the host's clock, in ns since 1970."""
        return self._required(self._answer(ClockAnswer, do="clock")).ns

    def facts(self, host: CellHost) -> FactsAnswer:
        """Return facts about the host; for the server's host, also its PostgreSQL and pgdyno."""
        is_server = host.role is HostRole.SERVER
        question = {"is_server": is_server, "postgresql": host.postgresql, "pgdyno": host.pgdyno}
        return self._required(self._answer(FactsAnswer, do="facts", **question))

    def trial_write(self, size_bytes: int) -> TrialWriteAnswer:
        """Write a file on the host, remove it, and return the result."""
        return self._required(self._answer(TrialWriteAnswer, do="trial_write", bytes=size_bytes))

    def take_away(self, owner: str) -> int:
        """End an owner's disconnected loads on the host; return the number of their processes."""
        return self._required(self._answer(TakenAwayAnswer, do="take_away", owner=owner)).ended

    def wake_up(self, program: str, cpus: tuple[int, ...]) -> WakeUpAnswer | Failed:
        """Run the program that measures wake-ups between CPUs of a set; an empty set means all CPUs."""
        return self._answer(WakeUpAnswer, do="wake_up", program=program, cpus=cpus)

    def listen(self, address: str, port: int) -> ListenAnswer | Failed:
        """Listen on one of the host's addresses, and return the port."""
        return self._answer(ListenAnswer, do="listen", address=address, port=port)

    def begin_accepting(self, token: str) -> None:
        """Start serving a probe on the host; ``accepted`` returns the result."""
        self._send(do="accept", token=token)

    def accepted(self) -> AcceptAnswer | Failed:
        """Return the serving side's measurement of a probe."""
        return parse_answer(self._channel.line(), AcceptAnswer)

    def probe(self, address: str, port: int, token: str) -> ProbeAnswer | Failed:
        """Measure a connection from the host to a runner that serves a probe."""
        return self._answer(ProbeAnswer, do="probe", address=address, port=port, token=token)

    def finish(self) -> None:
        """End the runner and its connection."""
        self._channel.finish()

    def stop(self) -> None:
        """Kill the connection at once; the runner exits at the end of its input."""
        self._channel.stop()

    def _answer(self, kind: type[Answer], **question: object) -> Answer | Failed:
        self._send(**question)
        return parse_answer(self._channel.line(), kind)

    def _required(self, answer: Answer | Failed) -> Answer:
        if isinstance(answer, Failed):
            raise RemoteHostError("the host could not answer", detail=answer.error)
        return answer

    def _send(self, **question: object) -> None:
        self._channel.send(json.dumps(question).encode() + b"\n")


@contextmanager
def sent_runner(host: CellHost, ssh_config: Path | None, lifetime_s: float) -> Iterator[Runner]:
    """Send a runner to a host; it may not have started yet. After ``lifetime_s`` it exits by itself.

    Raises: RemoteHostError if ssh is not installed here.
    """
    with _started(partial(ssh_command, host, ssh_config), lifetime_s) as runner:
        yield runner


@contextmanager
def runner_here(lifetime_s: float) -> Iterator[Runner]:
    """Start a runner on this machine, as the peer of a load host's connection."""
    with _started(lambda start: [sys.executable, *start[1:]], lifetime_s) as runner:
        yield runner


@contextmanager
def _started(command_for: Callable[[list[str]], list[str]], lifetime_s: float) -> Iterator[Runner]:
    program, greeting = program_text(RUNNER_MODULES), f"pgdyno-runner-{secrets.token_hex(16)}"
    argv = command_for(start_command(program, greeting, lifetime_s))
    with opened_channel(argv, ssh_environment()) as channel:
        channel.send(program)
        yield Runner(channel, greeting)
