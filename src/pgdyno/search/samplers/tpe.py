"""Optuna's tree-structured Parzen estimator: the plan first, then values that good trials had more often.

It takes the package ``optuna`` (the extra ``tune``). Its Gaussian process is not offered: that takes PyTorch.

Source: Bergstra et al. (2011), NIPS 24, Algorithms for Hyper-Parameter Optimization.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pgdyno.model.errors import UsageError
from pgdyno.model.tuning.space import Point, Space
from pgdyno.model.tuning.tuning import Trial

NAME = "tpe"
_AS_FOUND = "as found"  # no setting's value has a space in it without quotes


@dataclass
class _Tpe:
    space: Space
    study: Any
    distributions: dict[str, Any]
    asked: dict[tuple[tuple[str, str], ...], Any] = field(default_factory=dict)

    def ask(self) -> Point:
        """Return the next point."""
        trial = self.study.ask(self.distributions)
        point = {key: value for key, value in trial.params.items() if value != _AS_FOUND}
        self.asked[_key(point)] = trial
        return point

    def tell(self, trial: Trial) -> None:
        """Hand the score on."""
        optuna = _optuna()
        is_failed = trial.score is None
        asked = self.asked.pop(_key(trial.point), None)
        state = optuna.trial.TrialState.FAIL if is_failed else optuna.trial.TrialState.COMPLETE
        if asked is not None:
            self.study.tell(asked, None if is_failed else trial.score, state=state)
        elif not is_failed:  # of an earlier run of the same search
            params = {one.key: trial.point.get(one.key, _AS_FOUND) for one in self.space.dimensions}
            self.study.add_trial(
                optuna.trial.create_trial(params=params, distributions=self.distributions, value=trial.score)
            )


def _key(point: Point) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(point.items()))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UsageError(
            f'the sampler "{NAME}" takes the package optuna, which is not installed',
            hint="pip install 'pgdyno[tune]', or leave --sampler out",
        ) from None
    return optuna


def make(space: Space, seed: int) -> _Tpe:
    """Return the sampler. Raises: UsageError without optuna."""
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    if space.plan:
        study.enqueue_trial({one.key: space.plan.get(one.key, _AS_FOUND) for one in space.dimensions})
    choices = {
        one.key: optuna.distributions.CategoricalDistribution((_AS_FOUND, *one.values))
        for one in space.dimensions
    }
    return _Tpe(space, study, choices)
