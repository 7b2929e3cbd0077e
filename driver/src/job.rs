//! Jobs as submitted in JSON, and their conversion into a load and its clients.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::clock::nanos;
use crate::conninfo::Keywords;
use crate::error::{Error, Result};
use crate::load::{Arm, Load, RoleFacts};
use crate::placement::RoleClients;
use crate::protocol::request::Mode;
use crate::think_time::ThinkTime;
use crate::workload::catalogue::{self, Request};
use crate::workload::{Arrivals, Pace};

const MAX_CLIENTS: u64 = 100_000;
const MAX_THREADS: usize = 1024;
const MAX_THINK_TIMES: usize = 1000;
/// Valid rates of an open loop, per second over all clients of an arm. Below the minimum, with the most
/// clients, an arrival could be later than the clock can represent.
pub const RATES: RangeInclusive<f64> = 0.001..=1e9;

/// A load, and the servers to run it on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The servers; several run in turn.
    pub arms: Vec<ArmJob>,
    /// The workload's name.
    pub workload: String,
    /// Its options.
    #[serde(default = "empty")]
    pub options: Value,
    /// Connections per arm (and role).
    #[serde(default = "one")]
    pub clients: u64,
    /// Event loops.
    #[serde(default = "one_thread")]
    pub threads: usize,
    /// CPUs to pin the event loops to, round-robin.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// The random seed.
    #[serde(default = "one")]
    pub seed: u64,
    /// Whether other drivers run the other parts of this load.
    #[serde(default)]
    pub is_part: bool,
    /// With separate tables per client: the number of the first client's schema; the others follow.
    #[serde(default)]
    pub first_schema: Option<u64>,
    /// Query protocol.
    #[serde(default)]
    pub mode: Mode,
    /// Open loop: transactions per second over all clients of an arm.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Distribution of an open loop's arrivals.
    #[serde(default)]
    pub arrivals: ArrivalsJob,
    /// Transactions per client.
    #[serde(default)]
    pub count: Option<u64>,
    /// Pause after each transaction.
    #[serde(default)]
    pub think_time_s: f64,
    /// Equally likely pauses after transactions and before the first one.
    #[serde(default)]
    pub think_times_s: Vec<f64>,
    /// Time over which the clients start.
    #[serde(default)]
    pub ramp_s: f64,
    /// Number of transactions that may be given up.
    #[serde(default)]
    pub max_errors: u64,
    /// How long to try to replace a lost connection.
    #[serde(default)]
    pub reconnect_s: f64,
    /// Time limit on transactions after the end of their turn.
    #[serde(default = "a_minute")]
    pub drain_limit_s: f64,
    /// Time limit on the answer to a statement.
    #[serde(default = "two_minutes")]
    pub answer_limit_s: f64,
}

/// A server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmJob {
    /// Its name in results.
    pub name: String,
    /// Its connection parameters.
    pub target: Keywords,
    /// Prefix of its transaction logs; `None`: no logs.
    #[serde(default)]
    pub log_prefix: Option<PathBuf>,
}

/// The JSON form of `workload::Arrivals`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsJob {
    /// A Poisson process.
    #[default]
    Poisson,
    /// Equal gaps.
    Uniform,
}

fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

fn one() -> u64 {
    1
}

fn one_thread() -> usize {
    1
}

fn a_minute() -> f64 {
    60.0
}

fn two_minutes() -> f64 {
    120.0
}

impl Job {
    /// Reads a job from JSON.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::new("invalid job").detail(error.to_string()))
    }

    /// Checks the job as far as possible without a server, and creates its load and clients.
    pub fn plan(&self) -> Result<(Load, Vec<Vec<RoleClients>>)> {
        self.check()?;
        let arms = self.arms.iter().map(ArmJob::resolve).collect::<Result<Vec<_>>>()?;
        refuse_equal(&arms)?;
        let pace = self.pace();
        let mut clients = Vec::new();
        let mut facts = Vec::new();
        for arm in 0..self.arms.len() {
            let roles = catalogue::roles(&self.request(), pace)?;
            let mut of_arm = Vec::new();
            for role in roles {
                if arm == 0 {
                    facts.push(RoleFacts {
                        name: role.name,
                        statements: role.statements,
                        clients: role.clients.len(),
                        is_open: matches!(role.pace, Pace::Open { .. }),
                    });
                }
                let is_shared = !catalogue::is_bounded(&self.workload);
                of_arm.push(RoleClients { clients: role.clients, pace: role.pace, is_shared });
            }
            clients.push(of_arm);
        }
        let load = Load {
            arms,
            clients: facts.iter().map(|role| role.clients).max().unwrap_or(0),
            roles: facts,
            first_schema: self.first_schema,
            mode: self.mode,
            retried: catalogue::retried(&self.workload),
            count: self.count,
            think_time: self.think_time(),
            ramp: nanos(self.ramp_s),
            max_errors: self.max_errors,
            reconnect: nanos(self.reconnect_s),
            answer_limit: nanos(self.answer_limit_s),
        };
        Ok((load, clients))
    }

    /// The workload, for the catalogue.
    pub fn request(&self) -> Request<'_> {
        Request { name: &self.workload, options: &self.options, clients: self.clients, seed: self.seed }
    }

    /// The pace per client.
    fn pace(&self) -> Pace {
        match self.rate {
            None => Pace::Closed,
            Some(rate) => {
                let arrivals = match self.arrivals {
                    ArrivalsJob::Poisson => Arrivals::Poisson,
                    ArrivalsJob::Uniform => Arrivals::Uniform,
                };
                Pace::Open { rate: rate / self.clients as f64, arrivals }
            }
        }
    }

    fn think_time(&self) -> ThinkTime {
        if !self.think_times_s.is_empty() {
            ThinkTime::OneOf(self.think_times_s.iter().copied().map(nanos).collect())
        } else if self.think_time_s > 0.0 {
            ThinkTime::Always(nanos(self.think_time_s))
        } else {
            ThinkTime::None
        }
    }

    fn check_think_times(&self) -> Result<()> {
        within("the number of think_times_s", self.think_times_s.len(), 0, MAX_THINK_TIMES)?;
        for time_s in &self.think_times_s {
            within("one of think_times_s", *time_s, 0.0, 1e6)?;
        }
        if self.think_times_s.is_empty() {
            return Ok(());
        }
        let other = match self.rate {
            Some(_) => "rate",
            None if self.think_time_s > 0.0 => "think_time_s",
            None => return Ok(()),
        };
        Err(Error::new(format!("think_times_s and {other} are mutually exclusive"))
            .detail("both set the start of a client's next transaction")
            .hint("omit one of them"))
    }

    fn check(&self) -> Result<()> {
        if self.arms.is_empty() {
            return Err(Error::new("the job names no server").hint("add one to \"arms\""));
        }
        within("clients", self.clients, 1, MAX_CLIENTS)?;
        within("threads", self.threads, 1, MAX_THREADS)?;
        if let Some(rate) = self.rate {
            within("rate", rate, *RATES.start(), *RATES.end())?;
        }
        if let Some(count) = self.count {
            within("count", count, 1, u64::MAX)?;
            if catalogue::is_bounded(&self.workload) {
                return Err(Error::new(format!("workload \"{}\" cannot have a count", self.workload))
                    .hint("its options set the number of rows"));
            }
        }
        within("think_time_s", self.think_time_s, 0.0, 1e6)?;
        self.check_think_times()?;
        within("ramp_s", self.ramp_s, 0.0, 1e6)?;
        within("reconnect_s", self.reconnect_s, 0.0, 1e6)?;
        within("drain_limit_s", self.drain_limit_s, 0.001, 1e6)?;
        require_answer_limit(self.answer_limit_s)
    }
}

/// Checks the range of an answer limit, in seconds.
pub fn require_answer_limit(answer_limit_s: f64) -> Result<()> {
    within("answer_limit_s", answer_limit_s, 0.001, 1e6)
}

impl ArmJob {
    fn resolve(&self) -> Result<Arm> {
        let keywords = self.target.clone().or_environment(|name| std::env::var(name).ok());
        Ok(Arm { name: self.name.clone(), info: keywords.resolve()?, log_prefix: self.log_prefix.clone() })
    }
}

/// Refuses arms on the same database: they would disturb each other.
fn refuse_equal(arms: &[Arm]) -> Result<()> {
    let same = |one: &Arm, other: &Arm| {
        one.info.place() == other.info.place() && one.info.login.database == other.info.login.database
    };
    for (at, arm) in arms.iter().enumerate() {
        if let Some(other) = arms[..at].iter().find(|other| same(other, arm)) {
            let (database, place) = (&arm.info.login.database, arm.info.place());
            let message = format!("arms \"{}\" and \"{}\" are the same database", other.name, arm.name);
            return Err(Error::new(message)
                .detail(format!("\"{database}\" on {place}"))
                .hint("use a separate database for each arm"));
        }
    }
    Ok(())
}

/// Refuses a number out of range, and NaN.
fn within<Number: Copy + PartialOrd + std::fmt::Display>(
    name: &str,
    value: Number,
    low: Number,
    high: Number,
) -> Result<()> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(Error::new(format!("{name} cannot be {value}")).hint(format!("give a number from {low} to {high}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(extra: &str) -> Result<(Load, Vec<Vec<RoleClients>>)> {
        let arm =
            |name: &str| format!(r#"{{"name": "{name}", "target": {{"user": "u", "dbname": "{name}"}}}}"#);
        let arms = format!("[{}, {}]", arm("a"), arm("b"));
        Job::parse(&format!(r#"{{"arms": {arms}, "workload": "pgbench-select"{extra}}}"#))?.plan()
    }

    fn message(result: Result<(Load, Vec<Vec<RoleClients>>)>) -> String {
        result.err().unwrap().message
    }

    #[test]
    fn every_arm_gets_the_same_number_of_clients() {
        let (load, clients) = plan(r#", "clients": 3"#).unwrap();
        assert_eq!((load.arms.len(), load.clients), (2, 3));
        assert!(clients.iter().all(|arm| arm[0].clients.len() == 3));
    }

    #[test]
    fn clients_with_tables_of_their_own_find_them_by_their_search_paths() {
        let options = |extra: &str| {
            let (load, _) = plan(extra).unwrap();
            [0, 1].map(|client| load.info(1, client).login.options)
        };
        assert_eq!(options(r#", "clients": 2"#), [None, None]);
        let own = options(r#", "clients": 2, "first_schema": 4"#);
        assert_eq!(own, ["client_4", "client_5"].map(|name| Some(format!("-c search_path={name}"))));
    }

    #[test]
    fn nonsense_is_refused_with_its_value() {
        assert_eq!(message(plan(r#", "clients": 0"#)), "clients cannot be 0");
        assert_eq!(message(plan(r#", "rate": -5"#)), "rate cannot be -5");
        assert_eq!(message(plan(r#", "threads": 5000"#)), "threads cannot be 5000");
        assert_eq!(message(plan(r#", "think_time_s": -1"#)), "think_time_s cannot be -1");
    }

    #[test]
    fn think_times_are_one_for_all_or_several_and_belong_to_a_closed_loop() {
        let think_time = |extra: &str| plan(extra).unwrap().0.think_time;
        assert_eq!(think_time(""), ThinkTime::None);
        assert_eq!(think_time(r#", "think_time_s": 0.5"#), ThinkTime::Always(500_000_000));
        let two = r#", "think_times_s": [0, 1.5]"#;
        assert_eq!(think_time(two), ThinkTime::OneOf(vec![0, 1_500_000_000]));
        assert_eq!(
            message(plan(&format!(r#"{two}, "rate": 5"#))),
            "think_times_s and rate are mutually exclusive"
        );
        assert_eq!(
            message(plan(&format!(r#"{two}, "think_time_s": 1"#))),
            "think_times_s and think_time_s are mutually exclusive"
        );
        assert_eq!(message(plan(r#", "think_times_s": [1, -2]"#)), "one of think_times_s cannot be -2");
    }

    #[test]
    fn a_rate_of_less_than_one_in_a_thousand_seconds_is_refused() {
        let error = plan(r#", "rate": 1e-12"#).err().unwrap();
        assert_eq!(error.message, "rate cannot be 0.000000000001");
        assert_eq!(error.hint.unwrap(), "give a number from 0.001 to 1000000000");
        assert!(plan(r#", "rate": 0.001"#).is_ok());
    }

    #[test]
    fn two_arms_that_are_one_database_are_refused() {
        let arm = |name: &str, user: &str, database: &str, port: u16| {
            let place = format!(r#""host": "/s", "port": "{port}", "dbname": "{database}""#);
            format!(r#"{{"name": "{name}", "target": {{{place}, "user": "{user}"}}}}"#)
        };
        let planned = |arms: [String; 2]| {
            let text = format!(r#"{{"arms": [{}], "workload": "pgbench-select"}}"#, arms.join(", "));
            Job::parse(&text)?.plan()
        };
        let error = planned([arm("a", "u", "d", 5432), arm("b", "v", "d", 5432)]).err().unwrap();
        assert_eq!(error.message, "arms \"a\" and \"b\" are the same database");
        assert_eq!(error.detail.unwrap(), "\"d\" on /s/.s.PGSQL.5432");
        assert!(planned([arm("a", "u", "d", 5432), arm("b", "u", "d", 5433)]).is_ok());
        assert!(planned([arm("a", "u", "d", 5432), arm("b", "u", "e", 5432)]).is_ok());
    }

    #[test]
    fn an_unknown_field_is_named() {
        let error = plan(r#", "cleints": 3"#).err().unwrap();
        assert!(error.detail.unwrap().contains("unknown field `cleints`"));
    }

    #[test]
    fn a_rate_is_shared_by_the_clients() {
        let (load, clients) = plan(r#", "clients": 4, "rate": 100"#).unwrap();
        assert!(load.roles[0].is_open);
        let expected = Pace::Open { rate: 25.0, arrivals: Arrivals::Poisson };
        assert_eq!((clients[0][0].pace, clients[0][0].is_shared), (expected, true));
    }
}
