"""The runner on another host: a program sent through ssh that answers questions, and is gone afterwards."""

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
from pgdyno.remote.sent_program import program_text, start_command
from pgdyno.remote.ssh import ssh_command, ssh_environment

RUNNER_MODULES = ("_network_program", "_own_programs", "_runner_program")


class Runner:
    """A runner that has been sent, and may not have begun."""

    def __init__(self, channel: Channel, greeting: str) -> None:
        """Take over a channel."""
        self.has_begun = False
        self._channel, self._greeting = channel, greeting

    def limit(self, limit_s: float) -> None:
        """Give it some seconds from now on for all answers."""
        self._channel.ends_s = time.monotonic() + limit_s

    def begin(self) -> None:
        """Wait until it greets. Raises: RemoteHostError, with ssh's words, if it does not."""
        if not await_greeting(self._channel.line, self._greeting):
            raise RemoteHostError("it says other things than pgdyno's runner would")
        self.has_begun = True

    def clock(self) -> int:
        """Return its clock, in ns since 1970."""
        return self._answered(self._asked(ClockAnswer, do="clock")).ns

    def facts(self, host: CellHost) -> FactsAnswer:
        """Return facts about the host, with its PostgreSQL and pgdyno if it is the server's."""
        is_server = host.role is HostRole.SERVER
        question = {"is_server": is_server, "postgresql": host.postgresql, "pgdyno": host.pgdyno}
        return self._answered(self._asked(FactsAnswer, do="facts", **question))

    def trial_write(self, size_bytes: int) -> TrialWriteAnswer:
        """Have it write a file, and remove it."""
        return self._answered(self._asked(TrialWriteAnswer, do="trial_write", bytes=size_bytes))

    def take_away(self, owner: str) -> int:
        """Have it end an owner's loads that were cut off; return the number of their processes."""
        return self._answered(self._asked(TakenAwayAnswer, do="take_away", owner=owner)).ended

    def wake_up(self, program: str, cpus: tuple[int, ...]) -> WakeUpAnswer | Failed:
        """Have it run the program of wake-ups, between CPUs of a set; an empty one stands for all."""
        return self._asked(WakeUpAnswer, do="wake_up", program=program, cpus=cpus)

    def listen(self, address: str, port: int) -> ListenAnswer | Failed:
        """Have it listen on one of its addresses."""
        return self._asked(ListenAnswer, do="listen", address=address, port=port)

    def begin_accepting(self, token: str) -> None:
        """Have it take the other end of a probe; its answer is fetched afterwards."""
        self._send(do="accept", token=token)

    def accepted(self) -> AcceptAnswer | Failed:
        """Return the other end's measurement of a probe."""
        return parse_answer(self._channel.line(), AcceptAnswer)

    def probe(self, address: str, port: int, token: str) -> ProbeAnswer | Failed:
        """Have it measure a connection to a runner that accepts one."""
        return self._asked(ProbeAnswer, do="probe", address=address, port=port, token=token)

    def finish(self) -> None:
        """Let it end, and the connection with it."""
        self._channel.finish()

    def stop(self) -> None:
        """End the connection at once; the runner ends because nobody is there."""
        self._channel.stop()

    def _asked(self, kind: type[Answer], **question: object) -> Answer | Failed:
        self._send(**question)
        return parse_answer(self._channel.line(), kind)

    def _answered(self, answer: Answer | Failed) -> Answer:
        if isinstance(answer, Failed):
            raise RemoteHostError("it cannot tell", detail=answer.error)
        return answer

    def _send(self, **question: object) -> None:
        self._channel.send(json.dumps(question).encode() + b"\n")


@contextmanager
def sent_runner(host: CellHost, ssh_config: Path | None, lifetime_s: float) -> Iterator[Runner]:
    """Send a runner to a host; it may not have begun yet. After its lifetime it ends by itself.

    Raises: RemoteHostError if there is no ssh here.
    """
    with _started(partial(ssh_command, host, ssh_config), lifetime_s) as runner:
        yield runner


@contextmanager
def runner_here(lifetime_s: float) -> Iterator[Runner]:
    """Start a runner on this machine, as the other end of a load host's connection."""
    with _started(lambda start: [sys.executable, *start[1:]], lifetime_s) as runner:
        yield runner


@contextmanager
def _started(reaching: Callable[[list[str]], list[str]], lifetime_s: float) -> Iterator[Runner]:
    program, greeting = program_text(RUNNER_MODULES), f"pgdyno-runner-{secrets.token_hex(16)}"
    argv = reaching(start_command(program, greeting, lifetime_s))
    with opened_channel(argv, ssh_environment()) as channel:
        channel.send(program)
        yield Runner(channel, greeting)
