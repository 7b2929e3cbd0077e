//! Counts: latencies in histograms, rows, errors by SQLSTATE. Merging is exact.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::clock::Nanos;

/// Significant digits of latencies.
const PRECISION: u8 = 3;

/// Latencies in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let mut histogram = Histogram::new(PRECISION).expect("three digits are within the library's bounds");
        histogram.auto(true);
        Self(histogram)
    }
}

impl Latencies {
    /// Records one latency.
    pub fn record(&mut self, latency: Nanos) {
        if self.0.record(latency).is_err() {
            self.0.saturating_record(latency); // longer than the 584 years of u64
        }
    }

    /// Adds all latencies of another histogram.
    pub fn add(&mut self, other: &Self) {
        // This cannot fail: the histogram resizes itself.
        let _ = self.0.add(&other.0);
    }

    /// The number of recorded latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The usual percentiles, in microseconds; `None` without latencies.
    pub fn summary(&self) -> Option<Summary> {
        if self.0.is_empty() {
            return None;
        }
        let at = |quantile: f64| self.0.value_at_quantile(quantile) as f64 / 1e3;
        Some(Summary {
            mean: self.0.mean() / 1e3,
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.0.max() as f64 / 1e3,
        })
    }

    /// The histogram as pairs of a latency in microseconds (the middle of its bucket) and a count.
    pub fn pairs(&self) -> Vec<(f64, u64)> {
        self.0
            .iter_recorded()
            .map(|step| {
                (self.0.median_equivalent(step.value_iterated_to()) as f64 / 1e3, step.count_at_value())
            })
            .collect()
    }
}

/// Percentiles of latencies, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// All counts of one role in one arm.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Latencies of committed, counted transactions, from the intended start (open loop) or the start to the
    /// end.
    pub latencies: Latencies,
    /// Times from the intended to the actual start; open loop only.
    pub lags: Latencies,
    /// Latencies of all completed executions, by statement name; includes rolled-back attempts and
    /// transactions that are not counted.
    pub statements: BTreeMap<&'static str, Latencies>,
    /// Committed, counted transactions by client.
    pub clients: Vec<u64>,
    /// When each client's last one ended, on the arm's running clock.
    pub clients_ended: Vec<Nanos>,
    /// Rows returned or affected by all statements of committed, counted transactions.
    pub rows: u64,
    /// Retries of transactions, by SQLSTATE.
    pub retries: BTreeMap<String, u64>,
    /// Transactions given up, by SQLSTATE and failed statement (empty if no statement failed).
    pub errors: BTreeMap<(String, &'static str), u64>,
    /// Number of reconnections.
    pub reconnects: u64,
}

impl Counts {
    /// Creates empty counts for a role.
    pub fn new(clients: usize) -> Self {
        Self { clients: vec![0; clients], clients_ended: vec![0; clients], ..Self::default() }
    }

    /// The number of committed, counted transactions.
    pub fn transactions(&self) -> u64 {
        self.latencies.count()
    }

    /// The number of transactions given up.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds all counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.latencies.add(&other.latencies);
        self.lags.add(&other.lags);
        for (name, others) in &other.statements {
            self.statements.entry(name).or_default().add(others);
        }
        for (own, others) in self.clients.iter_mut().zip(&other.clients) {
            *own += others;
        }
        for (own, others) in self.clients_ended.iter_mut().zip(&other.clients_ended) {
            *own = (*own).max(*others);
        }
        self.rows += other.rows;
        self.reconnects += other.reconnects;
        add_counts(&mut self.retries, &other.retries);
        add_counts(&mut self.errors, &other.errors);
    }
}

fn add_counts<Cause: Clone + Ord>(own: &mut BTreeMap<Cause, u64>, others: &BTreeMap<Cause, u64>) {
    for (cause, count) in others {
        *own.entry(cause.clone()).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_keep_three_digits() {
        let mut latencies = Latencies::default();
        latencies.record(123_456_789);
        let (value, count) = latencies.pairs()[0];
        assert_eq!(count, 1);
        assert!((value / 123_456.789 - 1.0).abs() < 0.001, "{value}");
    }

    #[test]
    fn merged_counts_equal_counts_taken_together() {
        let mut together = Counts::new(2);
        let mut parts = [Counts::new(2), Counts::new(2)];
        for (at, latency) in [5u64, 700, 90_000, 1_000_000, 3].into_iter().enumerate() {
            for counts in [&mut together, &mut parts[at % 2]] {
                counts.latencies.record(latency);
                counts.statements.entry(["read", "write"][at / 3]).or_default().record(latency / 2);
                counts.clients[at % 2] += 1;
                *counts.errors.entry(("40001".into(), "update")).or_default() += 1;
            }
        }
        let [mut merged, other] = parts;
        merged.add(&other);
        assert_eq!(merged.latencies.pairs(), together.latencies.pairs());
        for name in ["read", "write"] {
            assert_eq!(merged.statements[name].pairs(), together.statements[name].pairs());
        }
        assert_eq!((merged.clients, merged.errors), (together.clients, together.errors));
    }

    #[test]
    fn percentiles_of_a_known_sample() {
        let mut latencies = Latencies::default();
        for microseconds in 1..=1000u64 {
            latencies.record(microseconds * 1000);
        }
        let summary = latencies.summary().unwrap();
        for (found, expected) in [(summary.p50, 500.0), (summary.p99, 990.0), (summary.max, 1000.0)] {
            assert!((found / expected - 1.0f64).abs() < 0.002, "{found} {expected}");
        }
    }
}
