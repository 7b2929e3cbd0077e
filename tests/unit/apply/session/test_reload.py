"""When a server has loaded its configuration files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pgdyno.apply.session.restart import reload_and_wait

NOON = 1_795_521_600.0


@dataclass
class Server:
    """Answers when it loaded its files; the second question after a reload finds them loaded."""

    loads_at: float
    asked: list[str] = field(default_factory=list)

    def execute(self, statement: str, _parameters: object = None) -> SimpleNamespace:
        self.asked.append(statement)
        if "pg_reload_conf" in statement:
            return SimpleNamespace(description=True, fetchall=lambda: [(True,)])
        loaded = self.loads_at if len(self.asked) > 3 else NOON  # once before, once in vain
        return SimpleNamespace(description=True, fetchall=lambda: [(loaded,)])


@pytest.mark.parametrize("step_s", [1, -3600], ids=["later", "after the clock was set back"])
def test_a_reload_has_ended_when_the_time_of_loading_changes(step_s: int) -> None:
    server = Server(NOON + step_s)

    @contextmanager
    def connect() -> Iterator[Server]:
        yield server

    reload_and_wait(cast("Any", server), cast("Any", connect))
    assert sum("pg_conf_load_time" in statement for statement in server.asked) == 3
