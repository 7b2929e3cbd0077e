//! The command line.

use std::io::Read;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use pgdyno_driver::commands::Command;
use pgdyno_driver::connect::LONGEST_STATEMENT;
use pgdyno_driver::conninfo::Keywords;
use pgdyno_driver::error::{Error, Result};
use pgdyno_driver::job::{ArmJob, ArrivalsJob, Job, require_answer_limit};
use pgdyno_driver::protocol::request::Mode;
use pgdyno_driver::workload::catalogue;
use pgdyno_driver::workload::sampled::TRANSACTIONS;
use serde_json::{Map, Value};

/// Generates load on PostgreSQL servers, on schedule and with little overhead, and measures it.
#[derive(Parser)]
#[command(version, about, after_help = EXIT_STATUS)]
pub struct Arguments {
    #[command(subcommand)]
    pub task: Task,
}

const EXIT_STATUS: &str = "\
Exit status: 0 success; 1 failure; 2 usage error; 130 or 143 terminated by SIGINT or SIGTERM, with the \
results so far. A second signal terminates immediately.";

#[derive(Subcommand)]
pub enum Task {
    /// Run a workload against a server.
    Run(RunArguments),
    /// Create and fill a workload's tables.
    Load(LoadArguments),
    /// Read a job (JSON, one line), then commands from standard input; write events to standard output.
    Serve,
    /// List the workloads.
    Workloads,
    /// Print a workload's prepared statements with sample parameters, as JSON.
    Statements(StatementsArguments),
}

#[derive(Args)]
pub struct RunArguments {
    /// The workload (see `pgdyno-driver workloads`).
    pub workload: String,
    /// The server: postgresql://… or host=… dbname=…; defaults come from PGHOST, PGUSER, ….
    #[arg(default_value = "")]
    pub target: String,
    /// An option of the workload; repeatable.
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Number of connections.
    #[arg(short, long, default_value_t = 1)]
    pub clients: u64,
    /// Number of event loops.
    #[arg(short = 'j', long, default_value_t = 1)]
    pub threads: usize,
    /// CPUs to pin the event loops to.
    #[arg(long, value_delimiter = ',', value_name = "CPU,…")]
    pub cpus: Vec<usize>,
    /// Query protocol.
    #[arg(short = 'M', long, value_enum, default_value_t = Mode::Prepared)]
    pub mode: Mode,
    /// Run time; default without a count: ten seconds, unless the workload ends by itself.
    #[arg(short = 'T', long, value_name = "SECONDS")]
    pub time: Option<f64>,
    /// Transactions per client.
    #[arg(short = 't', long)]
    pub count: Option<u64>,
    /// Warm-up time, not counted.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, conflicts_with = "count")]
    pub warmup: f64,
    /// Open loop: transactions per second over all clients; latency is measured from the intended start.
    #[arg(short = 'R', long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Distribution of an open loop's arrivals.
    #[arg(long, value_enum, default_value_t = ArrivalsJob::Poisson)]
    pub arrivals: ArrivalsJob,
    /// Pause after each transaction of a client.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub think_time: f64,
    /// Time over which the clients start.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub ramp: f64,
    /// Random seed: equal seeds give equal streams of transactions.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of transactions that may be given up before the run fails.
    #[arg(long, default_value_t = 0)]
    pub max_errors: u64,
    /// How long to try to replace a lost connection; 0: a lost connection fails the run.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub reconnect: f64,
    /// Time limit on the answer to a statement; exceeding it fails the run.
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    pub answer_limit: f64,
    /// Reporting interval.
    #[arg(short = 'i', long, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,
    /// Print JSON lines.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct LoadArguments {
    /// The workload.
    pub workload: String,
    /// The server, as in `run`.
    #[arg(default_value = "")]
    pub target: String,
    /// An option of the workload; repeatable.
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Random seed of the rows.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Time limit on the answer to a statement, such as an index build; exceeding it fails the load.
    #[arg(long, value_name = "SECONDS", default_value_t = LONGEST_STATEMENT.as_secs_f64())]
    pub answer_limit: f64,
}

impl LoadArguments {
    /// The time limit on a statement.
    pub fn answer_limit(&self) -> Result<Duration> {
        require_answer_limit(self.answer_limit)?;
        Ok(Duration::from_secs_f64(self.answer_limit))
    }
}

#[derive(Args)]
pub struct StatementsArguments {
    /// The workload.
    pub workload: String,
    /// An option of the workload; repeatable.
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Also read options from standard input, as one JSON object: a captured workload has many.
    #[arg(long)]
    pub options_on_stdin: bool,
    /// Number of transactions per client to take parameters from.
    #[arg(long, default_value_t = TRANSACTIONS, value_name = "N")]
    pub transactions: usize,
    /// Random seed of the transactions.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl StatementsArguments {
    /// The options from the arguments and, with `--options-on-stdin`, from standard input.
    pub fn options(&self, stdin: impl Read) -> Result<Value> {
        let mut options = read_options(&self.options)?;
        if self.options_on_stdin {
            let more: Map<String, Value> = serde_json::from_reader(stdin).map_err(|error| {
                Error::new(format!("could not read options from standard input: {error}"))
            })?;
            options.extend(more);
        }
        Ok(Value::Object(options))
    }
}

const DEFAULT_TIME_S: f64 = 10.0;

impl RunArguments {
    /// The job of these arguments.
    pub fn job(&self) -> Result<Job> {
        Ok(Job {
            arms: vec![ArmJob {
                name: "server".into(),
                target: Keywords::parse(&self.target)?,
                log_prefix: None,
            }],
            workload: self.workload.clone(),
            options: Value::Object(read_options(&self.options)?),
            clients: self.clients,
            threads: self.threads,
            cpus: self.cpus.clone(),
            seed: self.seed,
            is_part: false,
            first_schema: None,
            mode: self.mode,
            rate: self.rate,
            arrivals: self.arrivals,
            count: self.count,
            think_time_s: self.think_time,
            think_times_s: Vec::new(),
            ramp_s: self.ramp,
            max_errors: self.max_errors,
            reconnect_s: self.reconnect,
            drain_limit_s: 60.0,
            answer_limit_s: self.answer_limit,
        })
    }

    /// The commands of these arguments, for their job.
    pub fn commands(&self, job: &Job) -> Result<Vec<Command>> {
        let ends_by_itself = catalogue::ends_by_itself(&job.request())?;
        if self.warmup > 0.0 && ends_by_itself {
            return Err(Error::new(format!("workload \"{}\" cannot have a warm-up", self.workload))
                .detail("it ends after the work set by its options; a warm-up would do part of it")
                .hint("omit --warmup"));
        }
        let run = |duration_s| Command::Run { arm: 0, duration_s, start_at_ns: 0, interval_s: self.interval };
        let needs_time = self.count.is_none() && !ends_by_itself;
        let duration_s = self.time.or(needs_time.then_some(DEFAULT_TIME_S));
        let mut commands = Vec::new();
        if self.warmup > 0.0 {
            commands.push(run(Some(self.warmup)));
            commands.push(Command::Phase { name: "measured".into() });
        }
        commands.push(run(duration_s));
        commands.push(Command::Stop);
        Ok(commands)
    }
}

/// Reads `name=value` pairs. A value that is not valid JSON is a string.
pub fn read_options(pairs: &[String]) -> Result<Map<String, Value>> {
    let mut options = Map::new();
    for pair in pairs {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Error::new(format!("invalid option \"{pair}\"")).hint("write --option name=value")
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
        options.insert(name.into(), value);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: &str = r#"rows={"i0": 1000, "i1": 100, "i2": 10}"#;

    fn commands(arguments: &[&str]) -> Result<Vec<Command>> {
        let all = [&["pgdyno-driver", "run"], arguments].concat();
        match Arguments::try_parse_from(all).unwrap().task {
            Task::Run(run) => run.commands(&run.job()?),
            _ => panic!("not a run"),
        }
    }

    fn duration_s(arguments: &[&str]) -> Option<f64> {
        let first = commands(arguments).unwrap().swap_remove(0);
        match first {
            Command::Run { duration_s, .. } => duration_s,
            other => panic!("{other:?} is not a run"),
        }
    }

    #[test]
    fn a_run_lasts_ten_seconds_unless_it_has_a_time_or_an_end_of_its_own() {
        let step = ["insert-benchmark-l.i1", "-o", SIZE, "-o", "step_seconds=1"];
        let by_time = [&step[..], &["-o", "ends=time"]].concat();
        assert_eq!(duration_s(&["pgbench-select"]), Some(10.0));
        assert_eq!(duration_s(&["pgbench-select", "-t", "5"]), None);
        assert_eq!(duration_s(&step), None);
        assert_eq!(duration_s(&[&step[..], &["-T", "3"]].concat()), Some(3.0));
        assert_eq!(duration_s(&by_time), Some(10.0));
    }

    #[test]
    fn statements_take_options_from_both_sides() {
        let options = |more: &str| {
            let all =
                ["pgdyno-driver", "statements", "captured", "-o", "a=1", "-o", "b=2", "--options-on-stdin"];
            match Arguments::try_parse_from(all).unwrap().task {
                Task::Statements(statements) => statements.options(more.as_bytes()),
                _ => panic!("not the statements task"),
            }
        };
        assert_eq!(options(r#"{"b": "x"}"#).unwrap(), serde_json::json!({"a": 1, "b": "x"}));
        let error = options("[").unwrap_err();
        let message = error.message;
        assert!(message.starts_with("could not read options from standard input: "), "{message}");
    }

    #[test]
    fn a_workload_that_ends_by_itself_has_no_warm_up() {
        let step = ["insert-benchmark-l.i0", "-o", SIZE, "-o", "step_seconds=1", "--warmup", "1"];
        let error = commands(&step).unwrap_err();
        assert_eq!(error.message, "workload \"insert-benchmark-l.i0\" cannot have a warm-up");
        assert_eq!(commands(&["pgbench-select", "--warmup", "1"]).unwrap().len(), 4);
    }
}
