//! Results in JSON, computed from counts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::clock::Nanos;
use crate::load::Load;
use crate::record::{Counts, Latencies, Summary};
use crate::signals::Signal;

/// The results of a phase.
#[derive(Debug, Serialize)]
pub struct Phase {
    /// The phase's name.
    pub name: String,
    /// Wall time.
    pub wall_s: f64,
    /// Results by arm.
    pub arms: Vec<ArmResult>,
    /// Resources used by the driver.
    pub driver: Audit,
    /// The signal that terminated the run early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted_by: Option<Signal>,
}

/// The results of one arm.
#[derive(Debug, Serialize)]
pub struct ArmResult {
    /// Its name.
    pub name: String,
    /// Its running time.
    pub running_s: f64,
    /// Results by role.
    pub roles: Vec<RoleResult>,
}

/// The results of one role. Latencies and lags are in microseconds.
#[derive(Debug, Serialize)]
pub struct RoleResult {
    /// Its name.
    pub name: &'static str,
    /// Committed transactions.
    pub transactions: u64,
    /// Committed transactions per second of the arm's running time.
    pub transactions_per_s: f64,
    rows: u64,
    /// Latency of transactions, from the intended start.
    pub latency_us: Option<Summary>,
    latency_histogram_us: Vec<(f64, u64)>,
    /// Time from the intended to the actual start.
    pub lag_us: Option<Summary>,
    /// Results by statement name, over all tables; includes rolled-back attempts.
    pub statements: BTreeMap<&'static str, StatementResult>,
    clients: Vec<ClientResult>,
    /// Retries of transactions, by SQLSTATE.
    pub retries: BTreeMap<String, u64>,
    /// Transactions given up.
    pub errors: Vec<GivenUp>,
    reconnects: u64,
}

/// Transactions given up for one reason.
#[derive(Debug, Serialize)]
pub struct GivenUp {
    /// The error's SQLSTATE.
    pub sqlstate: String,
    /// The failed statement; empty if the connection was lost.
    pub statement: &'static str,
    /// Number of transactions.
    pub count: u64,
}

/// The results of one client.
#[derive(Debug, Serialize)]
pub struct ClientResult {
    transactions: u64,
    /// When its last transaction ended, on the arm's running clock.
    ended_s: f64,
}

/// The results of one statement.
#[derive(Debug, Serialize)]
pub struct StatementResult {
    /// Completed executions.
    pub count: u64,
    latency_us: Option<Summary>,
}

/// The driver's resource usage, to check whether it was the bottleneck.
#[derive(Debug, Serialize)]
pub struct Audit {
    /// CPU time.
    pub cpu_s: f64,
    /// CPU time of each thread as a share of wall time.
    pub thread_busy_shares: Vec<f64>,
    /// Peak memory.
    pub peak_memory_bytes: u64,
}

/// The results of one reporting interval.
#[derive(Debug, Serialize)]
pub struct Interval {
    /// Its end, relative to the beginning of the run.
    pub t_s: f64,
    /// Its length.
    pub length_s: f64,
    /// Results by role.
    pub roles: Vec<IntervalRole>,
}

/// The results of one role in one interval.
#[derive(Debug, Serialize)]
pub struct IntervalRole {
    /// Its name.
    pub name: &'static str,
    /// Committed transactions.
    pub transactions: u64,
    rows: u64,
    failed: u64,
    /// Latency of transactions, from the intended start.
    pub latency_us: Option<Summary>,
    lag_us: Option<Summary>,
}

/// Builds an arm's results.
pub fn arm_result(load: &Load, arm: usize, counts: &[Counts], running: Nanos) -> ArmResult {
    let roles = load.roles.iter().zip(counts).map(|(role, counts)| {
        // Statements that were not executed are included.
        let names: BTreeSet<_> = role.statements.iter().map(|statement| statement.name).collect();
        let none = Latencies::default();
        let statement = |name| {
            let latencies = counts.statements.get(name).unwrap_or(&none);
            (name, StatementResult { count: latencies.count(), latency_us: latencies.summary() })
        };
        RoleResult {
            name: role.name,
            transactions: counts.transactions(),
            transactions_per_s: counts.transactions() as f64 / seconds(running).max(f64::MIN_POSITIVE),
            rows: counts.rows,
            latency_us: counts.latencies.summary(),
            latency_histogram_us: counts.latencies.pairs(),
            lag_us: counts.lags.summary(),
            statements: names.into_iter().map(statement).collect(),
            clients: clients(counts),
            retries: counts.retries.clone(),
            errors: given_up(counts),
            reconnects: counts.reconnects,
        }
    });
    ArmResult { name: load.arms[arm].name.clone(), running_s: seconds(running), roles: roles.collect() }
}

fn given_up(counts: &Counts) -> Vec<GivenUp> {
    let one = |((code, statement), count): (&(String, &'static str), &u64)| GivenUp {
        sqlstate: code.clone(),
        statement,
        count: *count,
    };
    counts.errors.iter().map(one).collect()
}

fn clients(counts: &Counts) -> Vec<ClientResult> {
    let clients = counts.clients.iter().zip(&counts.clients_ended);
    clients
        .map(|(transactions, ended)| ClientResult { transactions: *transactions, ended_s: seconds(*ended) })
        .collect()
}

/// Builds an interval's results.
pub fn interval(load: &Load, counts: &[Counts], ended: Nanos, length: Nanos) -> Interval {
    let role = |(role, counts): (&crate::load::RoleFacts, &Counts)| IntervalRole {
        name: role.name,
        transactions: counts.transactions(),
        rows: counts.rows,
        failed: counts.failed(),
        latency_us: counts.latencies.summary(),
        lag_us: counts.lags.summary(),
    };
    Interval {
        t_s: seconds(ended),
        length_s: seconds(length),
        roles: load.roles.iter().zip(counts).map(role).collect(),
    }
}

/// Converts to seconds.
pub fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}
