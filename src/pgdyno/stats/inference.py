"""Statistical inference: interval, tests, and whether to withhold the verdict.

    symbol  meaning                                                          shape     unit
    μ̂       mean log-ratio                                                   (…)       1
    c       critical t: Student's if all numbers were fixed beforehand,      (…)       1
            anytime-valid if stopping depended on the data
    c_E     critical t of the interval that shows equivalence                (…)       1
    m_r     round means, in chronological order                              (…, R)    1

Works on one experiment and on thousands at once (see ``sample``): ``make simulate`` checks exactly the code
that ``decide`` uses. Texts are produced elsewhere.

A verdict is withheld in two cases, and only in these:
- Fewer than 5 rounds. With 4, symmetric bimodal noise puts all rounds on the same side one time in 8 (2·2⁻⁴):
  no method can then guarantee more than 87.5 %. With 5 it is one time in 16 (93.75 %). Testing after every
  round increases the risk, so it starts at 6 (96.9 % for the first look).
- The effect drifted: the round means have a trend. Their average describes no time of the experiment.

There is deliberately no pre-test for normality, skewness or outliers. The t interval is conservative under
symmetric heavy tails, and noise of both arms cancels into a symmetric log-ratio. Under one-sided noise a
pre-test removes the experiments that saw the tail and keeps those that did not, so the coverage of the
remaining ones gets *worse* (docs/results/simulation.md; Rochon, Gondan, Kieser (2012), BMC Medical Research
Methodology 12:81). Evident autocorrelation does not withhold a verdict either: the widening accounts for it,
and without those experiments the coverage of the remaining ones is worse.

Equivalence: a difference below a margin has to be shown, not assumed.

Two one-sided tests (TOST) show that the effect lies above the lower margin and below the upper one, each with
error probability α; the larger of the two p-values decides. As ratios the margins are 1/(1 + margin) and
1 + margin: symmetric in the log-ratio, and both within ±margin.

Source: Schuirmann (1987), J. of Pharmacokinetics and Biopharmaceutics 15, 657-680.

The product of separately measured ratios: the total effect of a chain of steps.

    symbol  meaning                                                          shape     unit
    μ̂_i     mean log-ratio of step i                                         (…)       1
    s_i     its standard error                                               (…)       1
    ν_i     its degrees of freedom                                           (…)       1

If step i takes a server from configuration i - 1 to i, the ratio of the last to the first is the product of
the steps' ratios, and its logarithm their sum: μ̂ = Σ μ̂_i. Each step was measured on other servers and at
other times, so the errors are independent and the variances add: s² = Σ s_i². The degrees of freedom of such
a sum are Welch's and Satterthwaite's: ν = s⁴ / Σ (s_i⁴ / ν_i), between the smallest ν_i and Σ ν_i.

Sources: Satterthwaite (1946), Biometrics Bulletin 2, 110-114; Welch (1947), Biometrika 34, 28-35.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import special

from pgdyno.stats import anytime, nested
from pgdyno.stats.nested import MeanEstimate
from pgdyno.stats.sample import BoolArray, FloatArray, Sample


def product_estimate(steps: Sequence[MeanEstimate]) -> MeanEstimate:
    """Return the mean log-ratio of a chain of independent steps.

    Its number of rounds is the smallest of the steps. The steps' standard errors already include the widening
    by autocorrelation.
    """
    variances = np.array([step.standard_error**2 for step in steps])
    degrees = np.array([step.df for step in steps])
    variance = variances.sum(axis=0)
    return MeanEstimate(
        rounds=min(step.rounds for step in steps),
        mean=np.asarray(sum(step.mean for step in steps)),
        standard_error=np.sqrt(variance),
        df=np.asarray(variance**2 / (variances**2 / degrees).sum(axis=0)),
        autocorrelation=np.zeros_like(variance),
        widening=np.ones_like(variance),
    )


class OneSidedTest(Protocol):
    """A p-value against a true log-ratio of ``null`` or less; ``nested`` and ``anytime`` have one each."""

    def __call__(self, estimated: MeanEstimate, null: float) -> FloatArray:
        """Return the p-value."""


def tost_p_value(estimated: MeanEstimate, margin: float, one_sided_p: OneSidedTest) -> FloatArray:
    """Return TOST's p-value: small if the true ratio is shown to be within ±``margin`` (0.02 = 2 %)."""
    bound = math.log1p(margin)
    mirrored = replace(estimated, mean=-estimated.mean)
    return np.maximum(one_sided_p(estimated, -bound), one_sided_p(mirrored, -bound))


MINIMUM_ROUNDS_FOR_VERDICT = 5
MINIMUM_ROUNDS_FOR_LOOKING = 6
DRIFT_LEVEL = 0.01  # one experiment in a hundred without any drift is withheld


@dataclass(frozen=True)
class Inference:
    """The results from one sample. Shapes: all (…). Log-ratios, not ratios."""

    estimate: MeanEstimate
    critical: FloatArray
    critical_equivalence: FloatArray
    p_value: FloatArray
    p_equivalence: FloatArray
    p_drift: FloatArray
    minimum_rounds: int

    @property
    def low(self) -> FloatArray:
        """Lower end of the interval."""
        return self.estimate.mean - self.critical * self.estimate.standard_error

    @property
    def high(self) -> FloatArray:
        """Upper end of the interval."""
        return self.estimate.mean + self.critical * self.estimate.standard_error

    @property
    def is_withheld(self) -> BoolArray:
        """Whether no verdict may be given."""
        return np.asarray((self.p_drift <= DRIFT_LEVEL) | (self.estimate.rounds < self.minimum_rounds))


def infer(sample: Sample, *, level: float, margin: float, is_anytime: bool, bias: float = 0.0) -> Inference:
    """Return interval and tests of a sample for which ``nested.missing`` is None.

    ``bias`` is that of ``nested.with_bias``. The larger critical value of anytime-valid inference applies to
    the noise of rounds only: the bias widens such an interval as it widens one of many fixed rounds.
    """
    estimated = nested.estimate(sample)
    share = special.ndtri((1 + level) / 2) / anytime.critical_t(estimated, level) if is_anytime else 1.0
    return _inferred(
        nested.with_bias(estimated, bias * share),
        drift_p_value(sample.round_means),
        level=level,
        margin=margin,
        is_anytime=is_anytime,
    )


def infer_product(samples: Sequence[Sample], *, level: float, margin: float) -> Inference:
    """Return interval and tests of the product of separately measured ratios, see ``product``.

    Their numbers of rounds were fixed beforehand. If any of them drifted, the product did.
    """
    estimated = product_estimate([nested.estimate(sample) for sample in samples])
    p_drift = np.min([drift_p_value(sample.round_means) for sample in samples], axis=0)
    return _inferred(estimated, p_drift, level=level, margin=margin, is_anytime=False)


def infer_mean(estimated: MeanEstimate, *, level: float, margin: float) -> Inference:
    """Return interval and tests of a mean over machines, which have no chronological order and no drift."""
    return _inferred(estimated, np.ones_like(estimated.mean), level=level, margin=margin, is_anytime=False)


def _inferred(
    estimated: MeanEstimate, p_drift: FloatArray, *, level: float, margin: float, is_anytime: bool
) -> Inference:
    method = anytime if is_anytime else nested
    critical = method.critical_t(estimated, level)
    return Inference(
        estimate=estimated,
        critical=critical,
        critical_equivalence=critical if is_anytime else nested.critical_t(estimated, 2 * level - 1),
        p_value=method.p_value(estimated),
        p_equivalence=tost_p_value(estimated, margin, method.one_sided_p),
        p_drift=p_drift,
        minimum_rounds=MINIMUM_ROUNDS_FOR_LOOKING if is_anytime else MINIMUM_ROUNDS_FOR_VERDICT,
    )


def drift_p_value(round_means: FloatArray) -> FloatArray:
    """Return the two-sided p-value against no linear trend over the rounds; 1 with fewer than 3 rounds.

    Shapes: (…, R) → (…). The t test of a least-squares slope against the rounds' order.
    Source: Draper, Smith (1998), Applied Regression Analysis, 3rd ed., §1.5.
    """
    rounds = round_means.shape[-1]
    if rounds < 3:
        return np.ones(round_means.shape[:-1])
    time = np.arange(rounds) - (rounds - 1) / 2
    deviations = round_means - round_means.mean(axis=-1, keepdims=True)
    explained = (deviations * time).sum(axis=-1) ** 2 / (time**2).sum()
    residual = (deviations**2).sum(axis=-1) - explained
    t = np.sqrt((rounds - 2) * explained / np.maximum(residual, np.finfo(np.float64).tiny))
    return np.asarray(2 * special.stdtr(rounds - 2, -t))
