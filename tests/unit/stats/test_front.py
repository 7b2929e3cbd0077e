"""The front: dominance, the order in which it leaves out, and its spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.stats.front import Told, alike, best_first, dominated, dominates, spread


def told_beyond(gains: Mapping[str, Sequence[float]], width: float) -> Told:
    """Compare by gains; what differs by more than the width does so for sure."""

    def told(one: str, other: str) -> Sequence[int]:
        differences = [a - b for a, b in zip(gains[one], gains[other], strict=True)]
        return [(d > width) - (d < -width) for d in differences]

    return told


FIVE = {
    "default": (0.0, 0.0),
    "plan": (0.30, 0.0),
    "compressed": (0.20, 0.60),
    "worse": (0.10, 0.50),
    "slow": (-0.10, 0.70),
}


def test_what_is_better_in_one_aim_and_worse_in_none_dominates() -> None:
    told = told_beyond(FIVE, 0.05)
    assert dominates(told, "compressed", "worse")
    assert not dominates(told, "compressed", "plan")
    assert not dominates(told, "plan", "compressed")
    assert dominates(told, "plan", "default")  # as good in the second aim


def test_the_front_has_what_is_dominated_by_nothing() -> None:
    off = dominated(best_first(FIVE), told_beyond(FIVE, 0.05))
    assert off.keys() == {"default", "worse"}
    assert off["worse"] == "compressed"


def test_what_is_not_sure_dominates_nothing() -> None:
    assert dominated(best_first(FIVE), told_beyond(FIVE, 1.0)) == {}


def test_three_that_dominate_each_other_in_a_circle_leave_one() -> None:
    circle = {"a": (2.0, 1.25, 0.5), "b": (0.5, 2.0, 1.25), "c": (1.25, 0.5, 2.0)}
    told = told_beyond(circle, 1.0)
    assert dominates(told, "a", "b")
    assert dominates(told, "b", "c")
    assert dominates(told, "c", "a")
    assert len(dominated(best_first(circle), told)) == 2


def test_what_is_not_told_from_a_simpler_one_is_like_it() -> None:
    gains = {"simple": (0.3, 0.1), "long": (0.31, 0.12), "other": (0.3, 0.4), "longest": (0.28, 0.41)}
    assert alike(list(gains), told_beyond(gains, 0.05)) == {"long": "simple", "longest": "other"}


def test_a_chain_of_small_steps_is_not_all_alike() -> None:
    gains = {"a": (0.0,), "b": (0.04,), "c": (0.08,)}
    assert alike(list(gains), told_beyond(gains, 0.05)) == {"b": "a"}


def test_the_best_in_each_aim_come_first_then_the_farthest() -> None:
    gains = {"a": (1.0, 0.0), "b": (0.0, 1.0), "near": (0.95, 0.1), "middle": (0.6, 0.6)}
    assert spread(gains, 3) == ("a", "b", "middle")
    assert spread(gains, 6) == ("a", "b", "middle", "near")


def test_one_may_be_the_best_in_every_aim() -> None:
    assert spread({"a": (1.0, 1.0), "b": (0.0, 0.0)}, 1) == ("a",)
    assert spread({}, 6) == ()


def test_aims_count_alike_whatever_their_range() -> None:
    gains = {"a": (1.0, 0.0), "b": (0.0, 100.0), "c": (0.9, 95.0)}
    assert best_first(gains)[0] == "c"


MANY = st.dictionaries(
    st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=3),
    st.tuples(*[st.integers(-9, 9).map(float)] * 3),
    min_size=1,
    max_size=9,
)


@given(gains=MANY, width=st.sampled_from([0.0, 1.0, 4.0]))
def test_the_front_is_never_empty_and_dominates_nothing_of_itself(
    gains: dict[str, tuple[float, ...]], width: float
) -> None:
    told = told_beyond(gains, width)
    off = dominated(best_first(gains), told)
    left = [name for name in gains if name not in off]
    assert left
    assert not any(dominates(told, one, other) for one in left for other in left)
    assert all(dominates(told, better, name) for name, better in off.items())


@given(gains=MANY)
def test_without_noise_it_is_the_pareto_front(gains: dict[str, tuple[float, ...]]) -> None:
    off = dominated(best_first(gains), told_beyond(gains, 0.0))
    pareto = {
        name
        for name, mine in gains.items()
        if not any(
            all(a >= b for a, b in zip(theirs, mine, strict=True)) and theirs != mine
            for theirs in gains.values()
        )
    }
    assert gains.keys() - off.keys() == pareto


@given(gains=MANY, most=st.integers(1, 9))
def test_the_spread_chooses_as_many_as_there_are_each_once(
    gains: dict[str, tuple[float, ...]], most: int
) -> None:
    chosen = spread(gains, most)
    assert len(chosen) == len(set(chosen)) == min(most, len(gains))


@given(gains=MANY, width=st.sampled_from([0.0, 2.0]))
def test_what_is_left_is_told_apart(gains: dict[str, tuple[float, ...]], width: float) -> None:
    told = told_beyond(gains, width)
    same = alike(list(gains), told)
    left = [name for name in gains if name not in same]
    assert all(any(told(one, other)) for one in left for other in left if one != other)
    assert all(not any(told(name, simpler)) and simpler in left for name, simpler in same.items())
