"""Fit contention and crosstalk to many curves at once.

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

import numpy as np

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
