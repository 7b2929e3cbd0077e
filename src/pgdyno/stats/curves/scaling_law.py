"""Laws of scaling fitted to a curve: Amdahl's, and Gunther's Universal Scalability Law.

    symbol  meaning                                                          shape     unit
    N_l     number of processes at level l                                   (L,)      1
    λ       rate of a single process                                         ()        1/s
    σ, κ    contention and crosstalk: X(N) = λN / (1 + σ(N−1) + κN(N−1))     ()        1
    z_l     level effect, ln rate (``Curve.means``)                          (L,)      1

Noise is multiplicative, so ln X is fitted, by least squares, with each level weighted by its blocks; σ is
limited to 0 … 1, and κ is at least 0. Intervals are percentiles over resampled blocks, refitted each time,
expanded for the number of blocks. The fit of a law is tested by the lack-of-fit F test: the residual of the
level effects under the law, against the residual of the data under the additive model of levels and blocks.

Sources: Amdahl (1967), AFIPS '67; Gunther (2007), Guerrilla Capacity Planning, ch. 4-6; Draper, Smith (1998),
Applied Regression Analysis, 3rd ed., §2.1 (lack of fit); Hesterberg (2015), What Teachers Should Know About
the Bootstrap, The American Statistician 69, 371-386, §5.3 (expanded percentiles).

Fit contention and crosstalk to many curves at once.

    symbol  meaning                                                          shape     unit
    t_sl    ln rate per worker of curve s at level l                         (S, L)    1
    w_sl    its weight; 0 if the curve lacks the level                       (S, L)    blocks
    b_pl    slowdown of level l per unit of parameter p                      (P, L)    1
    θ_sp    the parameters, each between 0 and 1                             (S, P)    1

Minimises Σ_l w_sl (v_sl − v̄_s)², v = t + ln(1 + θ·b), by Levenberg-Marquardt steps, clipped at the bounds;
a parameter at its bound is fixed while the other one moves. All curves are iterated together, each with its
own damping: a thousand resampled curves take as long as a few, one at a time.

Source: Nocedal, Wright (2006), Numerical Optimization, 2nd ed., §10.3 and §16.7 (gradient projection).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from pgdyno.model.experiments.scaling import Law, Scaling
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.curves import knee
from pgdyno.stats.curves.curve import Curve
from pgdyno.stats.sample import FloatArray

SCALES = (1.0, 0.01)
"""Of contention and crosstalk: steps are taken in these units."""

_STEPS = 200  # arbitrary limit; convergence takes ten to twenty
_SMALL_STEP = 1e-10
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-15, 1e10


def fit_all(
    targets: FloatArray, weights: FloatArray, slowing: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return θ (S, P) and the weighted residual sums of squares (S,). Shapes: start (P,)."""
    scales = np.array(SCALES[: len(slowing)])
    units, most = slowing * scales[:, None], 1 / scales
    totals = weights.sum(axis=1)

    def centred(values: FloatArray) -> FloatArray:
        """Return weighted deviations from the mean. Shapes: (S, …, L)."""
        own = weights.reshape(len(weights), *(1,) * (values.ndim - 2), -1)
        sums = (values * own).sum(axis=-1) / totals.reshape(-1, *(1,) * (values.ndim - 2))
        return np.asarray((values - sums[..., None]) * np.sqrt(own))

    def evaluated(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        slowed = 1 + at @ units
        return centred(targets + np.log(slowed)), centred(units / slowed[:, None, :])

    at = np.broadcast_to(start / scales, (len(targets), len(slowing))).copy()
    left, slopes = evaluated(at)
    cost, damping = (left**2).sum(axis=1), np.full(len(targets), _FIRST_DAMPING)
    is_done = np.zeros(len(targets), dtype=bool)
    for _ in range(_STEPS):
        tried = np.clip(at + _step(left, slopes, at, most, damping), 0.0, most)
        left_there, slopes_there = evaluated(tried)
        cost_there = (left_there**2).sum(axis=1)
        is_better = cost_there <= cost
        is_done |= (is_better & (np.abs(tried - at).max(axis=1) < _SMALL_STEP)) | (damping > _MOST_DAMPING)
        at = np.where(is_better[:, None], tried, at)
        left = np.where(is_better[:, None], left_there, left)
        slopes = np.where(is_better[:, None, None], slopes_there, slopes)
        cost = np.where(is_better, cost_there, cost)
        damping = np.clip(damping * np.where(is_better, 0.1, 10.0), _LEAST_DAMPING, 10 * _MOST_DAMPING)
        if is_done.all():
            break
    return at * scales, cost


def _step(
    left: FloatArray, slopes: FloatArray, at: FloatArray, most: FloatArray, damping: FloatArray
) -> FloatArray:
    """Return the damped step of every curve. Shapes: left (S, L), slopes (S, P, L), at (S, P)."""
    downhill = -(slopes @ left[:, :, None])[:, :, 0]
    is_held = ((at <= 0) & (downhill < 0)) | ((at >= most) & (downhill > 0))
    curvature = slopes @ slopes.transpose(0, 2, 1)
    is_free = ~is_held[:, :, None] & ~is_held[:, None, :]
    diagonal = np.eye(len(most), dtype=bool)
    damped = curvature * (1 + damping[:, None, None] * diagonal)
    system = np.where(is_free, damped, 0.0) + diagonal * (np.finfo(float).tiny + is_held[:, :, None])
    return np.asarray(np.linalg.solve(system, np.where(is_held, 0.0, downhill)[:, :, None])[:, :, 0])


AMDAHL, USL = "Amdahl", "USL"
_SEED = 1
RESAMPLES = 1000  # arbitrary: with eight blocks, the ends are the sixth lowest and highest
_PARAMETERS = {AMDAHL: 2, USL: 3}  # λ counts
_FIT_LEVEL = 0.05  # a law is rejected if chance explains its misfit in fewer than one case in twenty
_NEGLIGIBLE = 1e-12
_AT_BOUND = 1e-4  # of their scales: smaller values are set to 0


@dataclass(frozen=True)
class Fit:
    """σ, κ, and the weighted residual sum of squares."""

    contention: float
    crosstalk: float
    squares: float

    @property
    def peak(self) -> float | None:
        """Where dX/dN = 0: √((1 − σ)/κ)."""
        if self.crosstalk <= _NEGLIGIBLE:
            return None
        return math.sqrt(max(0.0, 1 - self.contention) / self.crosstalk)


def fit_laws(curve: Curve, *, offset: int = 0, level: float = 0.95) -> tuple[Law, ...]:
    """Return both laws, the simpler one first; without those that have more parameters than levels.

    ``offset``: the number of processes at level 0, 1 with a participating leader.
    """
    numbers = _numbers(curve, offset)
    return tuple(
        _law(curve, name, offset, level)
        for name, parameters in _PARAMETERS.items()
        if len(numbers) >= parameters and numbers[0] > 0
    )


def simplest(laws: tuple[Law, ...]) -> str | None:
    """Return the name of the first law that was tested and not rejected; None if no law fits."""
    return next((law.name for law in laws if (law.p_value or 0.0) > _FIT_LEVEL), None)


def fit(curves: Sequence[Curve], numbers: FloatArray, name: str, start: Fit | None = None) -> list[Fit]:
    """Return the best fit of a law to each of several curves with the same levels. Shapes: numbers (L,).

    ln λ is the mean residual, and drops out.
    """
    slowing = np.stack([numbers - 1, numbers * (numbers - 1)])[: _PARAMETERS[name] - 1]
    weights = np.stack([np.diagonal(curve.counts) for curve in curves]).astype(np.float64)
    means = np.where(weights > 0, np.stack([curve.means for curve in curves]), 0.0)
    guess = (0.1, 1e-3) if start is None else (start.contention, start.crosstalk)
    inside = np.clip(guess, 1e-9, 1 - 1e-9)[: len(slowing)]
    found, squares = fit_all(means - np.log(numbers), weights, slowing, inside)
    limits = _AT_BOUND * np.array(SCALES)
    padded = np.concatenate([found, np.zeros((len(found), 1))], axis=1)[:, :2]
    clear = np.where(padded < limits, 0.0, padded)
    return [
        Fit(float(sigma), float(kappa), float(rest))
        for (sigma, kappa), rest in zip(clear, squares, strict=True)
    ]


def lack_of_fit(curve: Curve, fitted: Fit, name: str) -> float | None:
    """Return the p-value of the F test; None without degrees of freedom for levels or blocks."""
    blocks, levels = curve.log_rates.shape
    free = int(curve.is_measured.sum()) - blocks - levels + 1
    spare = levels - _PARAMETERS[name]
    if spare < 1 or free < 1:
        return None
    effects = curve.log_rates - curve.means
    noise = np.nansum((effects - np.nanmean(effects, axis=1, keepdims=True)) ** 2) / free
    if noise <= _NEGLIGIBLE:
        return None
    return float(special.fdtrc(spare, free, fitted.squares / spare / noise))


def _law(curve: Curve, name: str, offset: int, level: float) -> Law:
    numbers = _numbers(curve, offset)
    (fitted,) = fit([curve], numbers, name)
    random = np.random.default_rng(_SEED)
    blocks = len(curve.log_rates)
    samples = [curve.resampled(random.integers(blocks, size=blocks)) for _ in range(RESAMPLES)]
    # A level missing in a sample has no weight. Excluding such samples would leave only a few similar ones.
    kept = [one for one in samples if np.count_nonzero(one.is_measured.any(axis=0)) >= _PARAMETERS[name]]
    refits = fit(kept, numbers, name, fitted) if kept else []
    tail = _expanded((1 - level) / 2, blocks)

    def interval(values: list[float], point: float) -> Interval:
        low, high = np.quantile(values, [tail, 1 - tail]) if values else (0.0, math.inf)
        return Interval(min(float(low), point), point, max(float(high), point), level)

    return Law(
        name=name,
        contention=interval([one.contention for one in refits], fitted.contention),
        crosstalk=None if name == AMDAHL else interval([one.crosstalk for one in refits], fitted.crosstalk),
        peak=_within(numbers, fitted.peak, offset),
        p_value=lack_of_fit(curve, fitted, name),
    )


def _numbers(curve: Curve, offset: int) -> FloatArray:
    return np.asarray(curve.levels + offset, dtype=np.float64)


def _within(numbers: FloatArray, peak: float | None, offset: int) -> float | None:
    """Return the level of a peak; None outside the measured range, where the law is not known to hold."""
    if peak is None or not numbers[0] <= peak <= numbers[-1]:
        return None
    return peak - offset


def _expanded(tail: float, blocks: int) -> float:
    """Return the smaller tail probability for which percentiles are as wide as Student's t interval."""
    if blocks < 2:
        return tail
    t = special.stdtrit(blocks - 1, tail)
    return float(special.ndtr(math.sqrt(blocks / (blocks - 1)) * t))


Blocks = Sequence[Mapping[int, float]]
"""Rates by level, block by block."""


def observe(
    blocks: Blocks, *, offset: int = 0, tolerance: float = knee.TOLERANCE, level: float = knee.LEVEL
) -> Scaling:
    """Return all findings except the laws, quickly: for a search between its blocks.

    Levels with too few blocks are described, but not used for the findings.
    Raises: ValueError as ``Curve.of``.
    """
    whole = Curve.of(blocks)
    curve = whole.compared
    best = int(curve.levels[knee.best(curve)])
    return Scaling(
        levels=knee.describe(whole, best, offset=offset, level=level),
        best=best,
        knee=knee.find_knee(curve, tolerance=tolerance, level=level),
        worse_from=knee.worse_from(curve, level=level),
        dips=knee.find_dips(curve, level=level),
        laws=(),
        law=None,
    )


def analyse(
    blocks: Blocks, *, offset: int = 0, tolerance: float = knee.TOLERANCE, level: float = knee.LEVEL
) -> Scaling:
    """Return all findings about blocks of rates; fitting the laws to resampled blocks takes seconds.

    ``offset``: the number of processes at level 0, 1 for workers with a participating leader.
    Raises: ValueError as ``Curve.of``.
    """
    observed = observe(blocks, offset=offset, tolerance=tolerance, level=level)
    laws = fit_laws(Curve.of(blocks).compared, offset=offset, level=level)
    return replace(observed, laws=laws, law=simplest(laws) if observed.is_unimodal else None)
