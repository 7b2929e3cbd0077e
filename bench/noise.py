"""Noise that simulated experiments are made of. The true mean log-ratio is always 0.

    symbol  meaning                                                          shape       unit
    E       simulated experiments                                            ()
    R, B    rounds, blocks per round                                         ()
    y       log-ratios                                                       (E, R, B)   1

The size is what was seen on small virtual machines: instance bias with a standard deviation of 1.2 %, blocks
with 1 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgdyno.stats.sample import FloatArray

ROUND_SD, BLOCK_SD = 0.012, 0.010

Draw = Callable[[np.random.Generator, tuple[int, int, int]], FloatArray]


@dataclass(frozen=True)
class Noise:
    """One kind of noise. ``is_limit``: published as what the method cannot see, not promised.

    ``is_drift``: the truth is the average over the whole experiment, so looking at a part has another truth.
    """

    name: str
    draw: Draw
    is_limit: bool = False
    is_drift: bool = False


def gaussian(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Draw normal instance bias and normal blocks."""
    return _rounds(random, shape) + BLOCK_SD * random.standard_normal(shape)


def _rounds(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    return ROUND_SD * random.standard_normal((*shape[:2], 1))


def _blocks(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    return BLOCK_SD * random.standard_normal(shape)


def _student(df: float) -> Draw:
    def draw(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
        rounds: FloatArray = random.standard_t(df, (*shape[:2], 1))
        return np.asarray(ROUND_SD * rounds + BLOCK_SD * random.standard_t(df, shape))

    return draw


def _outliers(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    scale = np.where(random.random(shape) < 0.1, 10, 1)
    return _rounds(random, shape) + BLOCK_SD * scale * random.standard_normal(shape)


def _stalls_of_both(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Both arms lose an exponential share of some blocks: skewed in each arm, symmetric in the ratio."""
    lost = random.exponential(0.03, (2, *shape)) * (random.random((2, *shape)) < 0.3)
    return np.asarray(_rounds(random, shape) + _blocks(random, shape) + lost[0] - lost[1])


def _two_modes(size: float) -> Draw:
    """Return noise whose rounds are ``size`` above or below the truth, with equal probability."""

    def draw(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
        sign = random.choice((-1.0, 1.0), (*shape[:2], 1))
        return np.asarray(size * sign + _blocks(random, shape))

    return draw


def _slow_instances(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Each arm's started server is 3 % slow with probability 0.3, whichever arm it is."""
    slow = 0.03 * (random.random((2, *shape[:2], 1)) < 0.3)
    return np.asarray(_blocks(random, shape) + slow[0] - slow[1])


def _two_speeds(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Blocks are measured in one of two states of the machine, 4 % apart."""
    return _rounds(random, shape) + _blocks(random, shape) + 0.02 * random.choice((-1.0, 1.0), shape)


def _drift(total: float) -> Draw:
    """Return noise around an effect that moves by ``total`` in a line; its average is the truth."""

    def draw(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
        time = np.linspace(-0.5, 0.5, shape[1] * shape[2]).reshape(shape[1:])
        return gaussian(random, shape) + total * time

    return draw


def _autoregressive(random: np.random.Generator, count: tuple[int, int], phi: float) -> FloatArray:
    """Return stationary AR(1) series with variance 1. Shapes: (E, length)."""
    series = random.standard_normal(count)
    for step in range(1, count[1]):
        series[:, step] = phi * series[:, step - 1] + np.sqrt(1 - phi**2) * series[:, step]
    return series


def _blocks_remember(phi: float) -> Draw:
    """Return blocks that resemble the block before, across rounds too, and independent instance bias."""

    def draw(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
        series = _autoregressive(random, (shape[0], shape[1] * shape[2]), phi).reshape(shape)
        return _rounds(random, shape) + BLOCK_SD * series

    return draw


def _blocks_remember_their_round(phi: float) -> Draw:
    """Return blocks that resemble the block before in the same round; starting the servers ends it."""

    def draw(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
        series = _autoregressive(random, (shape[0] * shape[1], shape[2]), phi).reshape(shape)
        return _rounds(random, shape) + BLOCK_SD * series

    return draw


def _rounds_remember(phi: float) -> Draw:
    def draw(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
        series = _autoregressive(random, shape[:2], phi)
        return ROUND_SD * series[..., None] + _blocks(random, shape)

    return draw


def _random_walk(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Draw an effect that walks away from the truth by a random step per round."""
    return gaussian(random, shape) + np.cumsum(0.3 * _rounds(random, shape), axis=1)


def _stalls_of_variant(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Only the variant's instances stall, exponentially: the log-ratio itself is skewed."""
    return ROUND_SD * (1 - random.exponential(1.0, (*shape[:2], 1))) + 0.3 * _blocks(random, shape)


def _rare_mode(random: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Only the variant's instances are 5 % slow, one in ten."""
    slow = random.random((*shape[:2], 1)) < 0.1
    return _blocks(random, shape) - 0.05 * (slow - 0.1)


NOISES = (
    Noise("normal", gaussian),
    Noise("normal, no instance bias", _blocks),
    Noise("heavy tails: Student t, 3 df", _student(3)),
    Noise("heavy tails: Cauchy", _student(1)),
    Noise("one block in 10 ten times as noisy", _outliers),
    Noise("stalls in both arms", _stalls_of_both),
    Noise("bimodal rounds, ±1 %", _two_modes(0.01)),
    Noise("bimodal rounds, ±2 %", _two_modes(0.02)),
    Noise("bimodal rounds, ±5 %", _two_modes(0.05)),
    Noise("bimodal: slow instances in both arms", _slow_instances),
    Noise("bimodal blocks", _two_speeds),
    Noise("drift by 2 %", _drift(0.02), is_drift=True),
    Noise("drift by 5 %", _drift(0.05), is_drift=True),
    Noise("autocorrelated blocks within rounds, φ = 0.9", _blocks_remember_their_round(0.9)),
    Noise("autocorrelated blocks across rounds, φ = 0.3", _blocks_remember(0.3)),
    Noise("autocorrelated blocks across rounds, φ = 0.6", _blocks_remember(0.6), is_limit=True),
    Noise("autocorrelated blocks across rounds, φ = 0.9", _blocks_remember(0.9), is_limit=True),
    Noise("autocorrelated rounds, φ = 0.2", _rounds_remember(0.2), is_limit=True),
    Noise("autocorrelated rounds, φ = 0.4", _rounds_remember(0.4), is_limit=True),
    Noise("autocorrelated rounds, φ = 0.6", _rounds_remember(0.6), is_limit=True),
    Noise("the effect walks at random", _random_walk, is_limit=True),
    Noise("stalls in the variant only", _stalls_of_variant, is_limit=True),
    Noise("one in ten variant instances slow", _rare_mode, is_limit=True),
)
