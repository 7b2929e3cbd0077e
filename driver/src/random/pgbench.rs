//! The distributions of pgbench's `random_gaussian`, `random_exponential` and `random_zipfian`.
//!
//! Source: `getGaussianRand`, `getExponentialRand` and `getZipfianRand` in pgbench.c, PostgreSQL 13 to 18.

use std::f64::consts::TAU;

use serde::Deserialize;

use super::Random;

/// A distribution that takes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PgbenchDistribution {
    /// A normal distribution, its middle that of the range, cut at `parameter` standard deviations on each side.
    Gaussian,
    /// The density falls by e^-`parameter` from the lowest value to the highest.
    Exponential,
    /// The k-th value has a probability proportional to k^-`parameter`.
    Zipfian,
}

impl PgbenchDistribution {
    /// Whether the distribution takes a parameter, by pgbench's limits.
    pub fn takes(self, parameter: f64) -> bool {
        match self {
            Self::Gaussian => parameter >= 2.0 && parameter.is_finite(),
            Self::Exponential => parameter > 0.0 && parameter.is_finite(),
            Self::Zipfian => (1.001..=1000.0).contains(&parameter),
        }
    }
}

/// A distribution over the integers from a lowest to a highest one, both included.
#[derive(Clone, Copy, Debug)]
pub struct PgbenchSampler {
    low: i64,
    high: i64,
    distribution: PgbenchDistribution,
    parameter: f64,
}

impl PgbenchSampler {
    /// Prepares to draw from `low` to `high`. Needs `low <= high`, a distance below 2^53, and a parameter that the
    /// distribution takes.
    pub fn new(distribution: PgbenchDistribution, parameter: f64, low: i64, high: i64) -> Self {
        debug_assert!(low <= high && distribution.takes(parameter));
        Self { low, high, distribution, parameter }
    }

    /// Draws one integer.
    pub fn draw(&self, random: &mut Random) -> i64 {
        let count = (self.high - self.low) as f64 + 1.0;
        let offset = match self.distribution {
            PgbenchDistribution::Gaussian => count * cut_normal(random, self.parameter),
            PgbenchDistribution::Exponential => count * cut_exponential(random, self.parameter),
            PgbenchDistribution::Zipfian => zipfian(random, self.parameter, count) - 1.0,
        };
        // A product with a number just below 1 may round up to the next integer.
        (self.low + offset as i64).min(self.high)
    }
}

/// A uniform number in (0, 1].
fn above_zero(random: &mut Random) -> f64 {
    1.0 - random.fraction()
}

/// A normal number (Box and Muller) within `limit` standard deviations, mapped to [0, 1).
fn cut_normal(random: &mut Random, limit: f64) -> f64 {
    loop {
        let normal = (-2.0 * above_zero(random).ln()).sqrt() * (TAU * random.fraction()).sin();
        if (-limit..limit).contains(&normal) {
            return (normal + limit) / (limit * 2.0);
        }
    }
}

/// An exponential number, cut where the density is e^-`parameter`, mapped to [0, 1).
fn cut_exponential(random: &mut Random, parameter: f64) -> f64 {
    let cut = (-parameter).exp();
    -(cut + (1.0 - cut) * above_zero(random)).ln() / parameter
}

/// An integer from 1 to `count` by rejection (Devroye, "Non-Uniform Random Variate Generation", 1986, p. 550-551).
fn zipfian(random: &mut Random, exponent: f64, count: f64) -> f64 {
    let less_one = exponent - 1.0;
    let scale = 2f64.powf(less_one);
    loop {
        let candidate = above_zero(random).powf(-1.0 / less_one).floor();
        let ratio = (1.0 + 1.0 / candidate).powf(less_one);
        let bound = above_zero(random) * candidate * (ratio - 1.0) / (scale - 1.0);
        if candidate <= count && bound <= ratio / scale {
            return candidate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    /// Fails if chi-square is five standard deviations above its mean; bins have at least twenty draws.
    fn assert_follows(distribution: PgbenchDistribution, parameter: f64, probability: impl Fn(f64) -> f64) {
        let sampler = PgbenchSampler::new(distribution, parameter, 11, 110);
        let mut random = Random::stream(1, "test", 0);
        let mut counts = [0.0; 100];
        for _ in 0..DRAWS {
            counts[usize::try_from(sampler.draw(&mut random) - 11).unwrap()] += 1.0;
        }
        let (mut chi_square, mut bins, mut pooled) = (0.0, 0, (0.0, 0.0));
        for (k, count) in (1..=100).zip(counts) {
            pooled = (pooled.0 + count, pooled.1 + probability(f64::from(k)) * DRAWS as f64);
            if pooled.1 >= 20.0 {
                chi_square += (pooled.0 - pooled.1).powi(2) / pooled.1;
                (bins, pooled) = (bins + 1, (0.0, 0.0));
            }
        }
        let freedom = f64::from(bins) - 1.0;
        assert!(bins > 5, "{bins} bins are too few");
        assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{chi_square:.0} of {bins} bins");
    }

    #[test]
    fn exponential_follows_its_definition() {
        for parameter in [0.5, 3.0, 10.0] {
            let below = |k: f64| (1.0 - (-parameter * k / 100.0).exp()) / (1.0 - (-parameter).exp());
            assert_follows(PgbenchDistribution::Exponential, parameter, |k| below(k) - below(k - 1.0));
        }
    }

    #[test]
    fn zipfian_follows_its_definition() {
        for exponent in [1.001, 1.07, 2.0] {
            let sum: f64 = (1..=100).map(|k| f64::from(k).powf(-exponent)).sum();
            assert_follows(PgbenchDistribution::Zipfian, exponent, |k| k.powf(-exponent) / sum);
        }
    }

    #[test]
    fn gaussian_follows_its_definition() {
        // The normal density by Simpson's rule over each hundredth of the range.
        for limit in [2.0, 2.5, 6.0] {
            let density = |z: f64| (-z * z / 2.0).exp();
            let at = |k: f64| limit * (2.0 * k / 100.0 - 1.0);
            let area = |k: f64| density(at(k - 1.0)) + 4.0 * density(at(k - 0.5)) + density(at(k));
            let sum: f64 = (1..=100).map(|k| area(f64::from(k))).sum();
            assert_follows(PgbenchDistribution::Gaussian, limit, |k| area(k) / sum);
        }
    }

    #[test]
    fn every_distribution_stays_within_its_range_however_small() {
        let mut random = Random::stream(1, "test", 0);
        for (distribution, parameter) in [
            (PgbenchDistribution::Gaussian, 2.0),
            (PgbenchDistribution::Exponential, 1e-9),
            (PgbenchDistribution::Exponential, 700.0),
            (PgbenchDistribution::Zipfian, 1.001),
            (PgbenchDistribution::Zipfian, 1000.0),
        ] {
            for (low, high) in [(5, 5), (1, 2), (0, 2_147_483_647), (-5, 5)] {
                let sampler = PgbenchSampler::new(distribution, parameter, low, high);
                for _ in 0..1000 {
                    let value = sampler.draw(&mut random);
                    assert!((low..=high).contains(&value), "{distribution:?}: {value}");
                }
            }
        }
    }
}
