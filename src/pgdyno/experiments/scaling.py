"""How throughput scales with the clients: a curve for each load and size of a grid with one variant. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, geometric_mean

from pgdyno.model.experiment import Block, Experiment
from pgdyno.model.guc import readable_bytes
from pgdyno.model.metric import CLIENT_CPU, SERVER_CPU
from pgdyno.model.scaling import Knee, Scaling
from pgdyno.stats.scaling import analyse, observe

THROUGHPUT = "throughput_tps"
LEAST_LEVELS = 3  # two numbers of clients are a comparison, not a curve
LEAST_ROUNDS = 5  # as for a verdict: with fewer, resampled rounds are too few for 95 %


@dataclass(frozen=True)
class ClientScaling:
    """One curve: by clients, under one load of one size.

    ``client_shares``: of the CPU time of client and server together, what the client took, by clients.
    """

    load: str
    database_bytes: int
    scaling: Scaling
    client_shares: Mapping[int, float]


def scaling_by_clients(experiment: Experiment) -> tuple[ClientScaling, ...]:
    """Return the curves of a grid that has at least three numbers of clients, in at least five rounds.

    With several variants the question is which of them is better, and there are none. A round is a block of
    each curve: all cells are measured in it, in random order.
    """
    return tuple(
        ClientScaling(
            one.load, one.database_bytes, _analysed(one.rounds), _client_shares(one.blocks, one.clients)
        )
        for one in _curves(experiment)
        if one.is_enough
    )


def knees_by_clients(experiment: Experiment) -> Mapping[str, Knee | None]:
    """Return the knees of all curves by load and size in words, at once: without laws.

    None: too few rounds count. A grid of fewer than three numbers of clients has no curves.
    """
    return {
        f"{one.load}, {readable_bytes(one.database_bytes)}": observe(one.rounds).knee
        if one.is_enough
        else None
        for one in _curves(experiment)
        if len(set(one.clients.values())) >= LEAST_LEVELS
    }


@dataclass(frozen=True)
class _Measured:
    """What was measured of one curve: blocks that count, and clients by workload."""

    load: str
    database_bytes: int
    clients: Mapping[str, int]
    blocks: Sequence[Block]

    @property
    def rounds(self) -> list[Mapping[int, float]]:
        """The throughput by clients of every round."""
        return _rates(self.blocks, self.clients)

    @property
    def is_enough(self) -> bool:
        """Whether it is a curve."""
        rounds = self.rounds
        return (
            len(rounds) >= LEAST_ROUNDS
            and len({level for rates in rounds for level in rates}) >= LEAST_LEVELS
        )


def _analysed(rounds: Sequence[Mapping[int, float]]) -> Scaling:
    return _analysed_once(tuple(tuple(rates.items()) for rates in rounds))


@lru_cache(maxsize=64)
def _analysed_once(rounds: tuple[tuple[tuple[int, float], ...], ...]) -> Scaling:
    """Fits take seconds, and the terminal, the page and the JSON each ask for the same ones."""
    return analyse([dict(rates) for rates in rounds])


def _curves(experiment: Experiment) -> Iterator[_Measured]:
    places = dict.fromkeys((cell.load, cell.database_bytes) for cell in experiment.cells.values())
    for load, database_bytes in places if len(experiment.variants) == 1 else ():
        clients = {
            workload: cell.clients
            for workload, cell in experiment.cells.items()
            if (cell.load, cell.database_bytes) == (load, database_bytes)
        }
        blocks = [one for one in experiment.blocks if one.workload in clients and not one.void_reasons]
        yield _Measured(load, database_bytes, clients, blocks)


def _rates(blocks: Sequence[Block], clients: Mapping[str, int]) -> list[Mapping[int, float]]:
    rounds: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in blocks:
        if rate := block.arms[0].values.get(THROUGHPUT):
            rounds[block.round][clients[block.workload]].append(rate)
    return [{level: geometric_mean(found) for level, found in rates.items()} for rates in rounds.values()]


def _client_shares(blocks: Sequence[Block], clients: Mapping[str, int]) -> Mapping[int, float]:
    """Return the mean share by clients, of blocks in which both were metered."""
    shares: dict[int, list[float]] = defaultdict(list)
    for block in blocks:
        values = block.arms[0].values
        client, both = values.get(CLIENT_CPU), values.get(CLIENT_CPU, 0.0) + values.get(SERVER_CPU, 0.0)
        if client is not None and SERVER_CPU in values and both > 0:
            shares[clients[block.workload]].append(client / both)
    return {level: fmean(found) for level, found in sorted(shares.items())}
