"""``run clients --dsn``: increasing numbers of clients on an attached server, near or far.

On a machine of its own the client takes nothing from the server, which is what a client on the server's
machine does. In return the network is part of every figure, and what the server spends is not seen.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from pgdyno.apply.host_state import this_host
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.attached_server import find_remote_server
from pgdyno.measure.arenas.opening import open_remote_arena
from pgdyno.measure.arenas.room_for_load import require_room
from pgdyno.measure.awake.awake import as_booted_beside
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.experiments.bundled_study import Sizing, StudyContext
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.variants.variant import Variant
from pgdyno.store.experiments import open_store
from pgdyno.studies.bundled import clients

_AS_FOUND = Variant("as-found")
_AS_IT_IS = (
    "measured on a running server as it is: its other work at the time is in the figures, and it was "
    "not restarted for the rounds, which only get their data afresh"
)
_ELSEWHERE = (
    "the server is not proven to run on the clients' host: its CPU time was not seen, and a network between "
    "them is part of every figure"
)


def measure_clients_of(dsn: str, sizing: Sizing, conditions: Conditions, progress: Progress) -> Experiment:
    """Measure the study's loads, in databases of their own, by every number of clients in question.

    Raises: PrivilegeError for a role that may not load the server, RefusedError for a standby, UsageError
    for more clients than the server has connections for; ServerError, ConnectionFailedError.
    """
    require_room(dsn, max(clients.client_counts(sizing)))
    cells = clients.workloads(sizing)
    study = clients.study(StudyContext(_AS_FOUND, tuple(cells), conditions.design, sizing=sizing))
    server, _ = find_remote_server(dsn)
    notes = (_AS_IT_IS, *((_ELSEWHERE,) if server.pid is None else ()), *study.notes)
    with (
        open_remote_arena(dsn, progress) as arena,
        closing(open_store()) as store,
    ):
        run = ExperimentRun(arena, store, progress, cells, is_resumable=False)
        awake = as_booted_beside(this_host(), is_here=server.pid is not None)
        context = Context(options=clients.STUDY.grid_options(sizing), awake=awake)
        return run.run(replace(study, notes=notes), budget_s=conditions.budget_s, context=context)
