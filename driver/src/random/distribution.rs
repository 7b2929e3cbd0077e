//! sysbench's distributions of accesses over a table's rows.
//!
//! `uniform`, `gaussian`, `special` and `pareto` are those of sysbench 1.0.20 with its default parameters,
//! including their oddities; `zipfian` is from sysbench 1.1 and has that version's exponent.

use serde::Deserialize;

use super::Random;

/// Number of uniform numbers averaged into a gaussian one (`--rand-spec-iter`).
const GAUSSIAN_TERMS: u32 = 12;
/// The share of draws of `special` that hit its hot values (`--rand-spec-res`, 75 %).
const SPECIAL_HOT_DRAWS: f64 = 0.75;
/// The share of values that are hot in `special` (`--rand-spec-pct`, 1 %).
const SPECIAL_HOT_VALUES: f64 = 0.01;
/// In `pareto`, a share of `1 - h` of the draws hits a share of `h` of the values (`--rand-pareto-h`).
const PARETO_H: f64 = 0.2;
/// The k-th value of `zipfian` has a probability proportional to k^-0.8 (`--rand-zipfian-exp`). The integer
/// powers in `Zipfian` depend on this exponent.
const ZIPFIAN_EXPONENT: f64 = 0.8;

/// The name of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Every value is equally likely.
    #[default]
    Uniform,
    /// The mean of twelve uniform numbers: most likely in the middle of the range.
    Gaussian,
    /// Three of four draws hit the middle 1 % of the values; the others are gaussian.
    Special,
    /// Four of five draws hit the first fifth, recursively.
    Pareto,
    /// The first values are the most likely, as in word frequencies.
    Zipfian,
}

/// A distribution over an inclusive range of integers.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    low: i64,
    high: i64,
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Uniform,
    Gaussian,
    Special,
    Pareto { power: f64 },
    Zipfian(Zipfian),
}

impl Sampler {
    /// A sampler from `low` to `high`, inclusive. Requires `low <= high` and a distance below 2^53.
    pub fn new(distribution: Distribution, low: i64, high: i64) -> Self {
        debug_assert!(low <= high, "nothing lies between {low} and {high}");
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Gaussian => Shape::Gaussian,
            Distribution::Special => Shape::Special,
            Distribution::Pareto => Shape::Pareto { power: PARETO_H.ln() / (1.0 - PARETO_H).ln() },
            Distribution::Zipfian => Shape::Zipfian(Zipfian::over((high - low + 1) as f64)),
        };
        Self { low, high, shape }
    }

    /// Draws one integer.
    pub fn draw(&self, random: &mut Random) -> i64 {
        let distance = (self.high - self.low) as f64;
        let offset = match &self.shape {
            Shape::Uniform => return random.between(self.low, self.high),
            Shape::Gaussian => (distance + 1.0) * mean_of_uniform(random),
            Shape::Special => special(random, distance),
            Shape::Pareto { power } => (distance + 1.0) * random.fraction().powf(*power),
            Shape::Zipfian(zipfian) => zipfian.draw(random) - 1.0,
        };
        // A product with a number just below 1 may round up to the next integer.
        (self.low + offset as i64).min(self.high)
    }
}

fn mean_of_uniform(random: &mut Random) -> f64 {
    (0..GAUSSIAN_TERMS).map(|_| random.fraction()).sum::<f64>() / f64::from(GAUSSIAN_TERMS)
}

/// One uniform number chooses the part and, among the hot values, the value. It is then at least
/// `1 - SPECIAL_HOT_DRAWS`, so the first quarter of the hot values is never drawn as such, as in sysbench.
fn special(random: &mut Random, distance: f64) -> f64 {
    let choice = random.fraction();
    if choice < 1.0 - SPECIAL_HOT_DRAWS {
        return distance * mean_of_uniform(random);
    }
    let hot = distance * SPECIAL_HOT_VALUES;
    choice * (hot + 1.0) + (distance - hot) / 2.0
}

/// Rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", ACM TOMACS 6(3), 1996): x is drawn from the density x^-0.8 by inversion, rounded
/// to k, and accepted such that the probability of k is proportional to k^-0.8. Nine of ten draws are
/// accepted at once.
#[derive(Clone, Copy, Debug)]
struct Zipfian {
    count: f64,
    /// `area` at the lower end, chosen so that k = 1 has an area of exactly 1.
    area_low: f64,
    /// `area` at the upper end, `count` + 1/2.
    area_high: f64,
    /// k is always accepted if k - x is not above this.
    squeeze: f64,
}

impl Zipfian {
    fn over(count: f64) -> Self {
        Self {
            count,
            area_low: area(1.5) - 1.0,
            area_high: area(count + 0.5),
            squeeze: 2.0 - area_inverse(area(2.5) - density(2.0)),
        }
    }

    /// Draws an integer from 1 to `count`.
    fn draw(&self, random: &mut Random) -> f64 {
        loop {
            let at = self.area_high - random.fraction() * (self.area_high - self.area_low);
            let x = area_inverse(at);
            let k = x.round().clamp(1.0, self.count);
            if k - x <= self.squeeze || at >= area(k + 0.5) - density(k) {
                return k;
            }
        }
    }
}

fn density(x: f64) -> f64 {
    x.powf(-ZIPFIAN_EXPONENT)
}

/// The integral of `density` from 0 to `x`.
fn area(x: f64) -> f64 {
    x.powf(1.0 - ZIPFIAN_EXPONENT) / (1.0 - ZIPFIAN_EXPONENT)
}

/// The inverse of `area`. Its exponent, 1 / (1 - 0.8) = 5, is an integer: no logarithm is needed.
fn area_inverse(area: f64) -> f64 {
    (area * (1.0 - ZIPFIAN_EXPONENT)).powi(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn counts(distribution: Distribution) -> Vec<f64> {
        let sampler = Sampler::new(distribution, 1, 1000);
        let mut random = Random::stream(1, "test", 0);
        let mut counts = vec![0.0; 1000];
        for _ in 0..DRAWS {
            counts[usize::try_from(sampler.draw(&mut random) - 1).unwrap()] += 1.0;
        }
        counts
    }

    /// How often sysbench 1.0.20 drew each of 1 to 1000 in 200,000 draws.
    fn counts_of_sysbench(name: &str) -> Vec<f64> {
        let table = include_str!("../../tests/fixtures/sysbench-1.0.20-distributions.txt");
        let line = table.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(|count| count.parse().unwrap()).collect()
    }

    /// Merges neighbouring bins until each holds at least twenty draws, ours and theirs together.
    fn pool(ours: &[f64], theirs: &[f64]) -> Vec<(f64, f64)> {
        let mut pooled = vec![(0.0, 0.0)];
        for (ours, theirs) in ours.iter().zip(theirs) {
            let bin = pooled.last_mut().unwrap();
            *bin = (bin.0 + ours, bin.1 + theirs);
            if bin.0 + bin.1 >= 20.0 {
                pooled.push((0.0, 0.0));
            }
        }
        let rest = pooled.pop().unwrap();
        let last = pooled.last_mut().unwrap();
        *last = (last.0 + rest.0, last.1 + rest.1);
        pooled
    }

    /// The bound is five standard deviations of chi-square above its mean.
    fn assert_chi_square_fits(chi_square: f64, bins: usize) {
        let freedom = bins as f64 - 1.0;
        let bound = freedom + 5.0 * (2.0 * freedom).sqrt();
        assert!(bins > 100, "{bins} bins are too few");
        assert!(chi_square < bound, "chi-square {chi_square:.0} of {bins} bins is above {bound:.0}");
    }

    fn assert_draws_as_sysbench_does(distribution: Distribution, name: &str) {
        let bins = pool(&counts(distribution), &counts_of_sysbench(name));
        let chi_square = bins.iter().map(|(ours, theirs)| (ours - theirs).powi(2) / (ours + theirs)).sum();
        assert_chi_square_fits(chi_square, bins.len());
    }

    #[test]
    fn uniform_is_as_in_sysbench() {
        assert_draws_as_sysbench_does(Distribution::Uniform, "uniform");
    }

    #[test]
    fn gaussian_is_as_in_sysbench() {
        assert_draws_as_sysbench_does(Distribution::Gaussian, "gaussian");
    }

    #[test]
    fn special_is_as_in_sysbench() {
        assert_draws_as_sysbench_does(Distribution::Special, "special");
    }

    #[test]
    fn pareto_is_as_in_sysbench() {
        assert_draws_as_sysbench_does(Distribution::Pareto, "pareto");
    }

    #[test]
    fn zipfian_follows_its_definition() {
        let weights: Vec<f64> = (1..=1000).map(|k| f64::from(k).powf(-0.8)).collect();
        let scale = DRAWS as f64 / weights.iter().sum::<f64>();
        let expected: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let bins = pool(&counts(Distribution::Zipfian), &expected);
        let chi_square = bins.iter().map(|(ours, expected)| (ours - expected).powi(2) / expected).sum();
        assert_chi_square_fits(chi_square, bins.len());
    }

    #[test]
    fn every_distribution_stays_within_its_range_however_small() {
        let mut random = Random::stream(1, "test", 0);
        for name in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
            let distribution: Distribution = serde_json::from_value(name.into()).unwrap();
            for (low, high) in [(5, 5), (1, 2), (1, 3), (0, 2_147_483_647), (-5, 5)] {
                let sampler = Sampler::new(distribution, low, high);
                for _ in 0..1000 {
                    let value = sampler.draw(&mut random);
                    assert!((low..=high).contains(&value), "{name}: {value} is not in {low}..={high}");
                }
            }
        }
    }
}
