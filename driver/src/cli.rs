//! The command line.

use std::io::Read;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use pgdyno_driver::connect::LONG;
use pgdyno_driver::conninfo::Keywords;
use pgdyno_driver::error::{Error, Result};
use pgdyno_driver::job::{ArmJob, ArrivalsJob, Job, require_answer_limit};
use pgdyno_driver::protocol::request::Mode;
use pgdyno_driver::run::Command;
use pgdyno_driver::workload::catalogue;
use pgdyno_driver::workload::sampled::TRANSACTIONS;
use serde_json::{Map, Value};

/// Issues load on PostgreSQL servers, on schedule and at little cost, and measures it.
#[derive(Parser)]
#[command(version, about, after_help = EXIT_STATUS)]
pub struct Arguments {
    #[command(subcommand)]
    pub task: Task,
}

const EXIT_STATUS: &str = "\
Exit status: 0 done; 1 failed; 2 usage; 130 or 143 ended by SIGINT or SIGTERM, with the results so far. \
A second signal ends it at once.";

#[derive(Subcommand)]
pub enum Task {
    /// Run a workload against a server.
    Run(RunArguments),
    /// Create and fill the tables that a workload needs.
    Load(LoadArguments),
    /// Take a job (JSON, one line) and then commands from the standard input; tell events on the output.
    Serve,
    /// List the workloads.
    Workloads,
    /// Print a workload's prepared statements with parameters of some transactions, as JSON.
    Statements(StatementsArguments),
}

#[derive(Args)]
pub struct RunArguments {
    /// What to run (see `pgdyno-driver workloads`).
    pub workload: String,
    /// The server: postgresql://… or host=… dbname=…; what is missing comes from PGHOST, PGUSER, ….
    #[arg(default_value = "")]
    pub target: String,
    /// An option of the workload; repeatable.
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Connections.
    #[arg(short, long, default_value_t = 1)]
    pub clients: u64,
    /// Event loops.
    #[arg(short = 'j', long, default_value_t = 1)]
    pub threads: usize,
    /// CPUs that the event loops are pinned to.
    #[arg(long, value_delimiter = ',', value_name = "CPU,…")]
    pub cpus: Vec<usize>,
    /// How statements travel.
    #[arg(short = 'M', long, value_enum, default_value_t = Mode::Prepared)]
    pub mode: Mode,
    /// How long to run; without this and a count, ten seconds, unless the workload ends by itself.
    #[arg(short = 'T', long, value_name = "SECONDS")]
    pub time: Option<f64>,
    /// Transactions per client.
    #[arg(short = 't', long)]
    pub count: Option<u64>,
    /// Run beforehand, without counting.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, conflicts_with = "count")]
    pub warmup: f64,
    /// Open loop: transactions per second over all clients; latencies count from the intended start.
    #[arg(short = 'R', long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// How an open loop's arrivals are spread.
    #[arg(long, value_enum, default_value_t = ArrivalsJob::Poisson)]
    pub arrivals: ArrivalsJob,
    /// Pause of each client after each transaction.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub think_time: f64,
    /// Time over which the clients start.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub ramp: f64,
    /// Of every random choice: equal seeds give equal streams of transactions.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many transactions may be given up before the run fails.
    #[arg(long, default_value_t = 0)]
    pub max_errors: u64,
    /// For how long a lost connection is tried to be replaced; 0: losing one fails the run.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub reconnect: f64,
    /// How long the server may leave a statement unanswered before the run fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    pub answer_limit: f64,
    /// Length of an interval.
    #[arg(short = 'i', long, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,
    /// Print JSON lines.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct LoadArguments {
    /// Whose tables to load.
    pub workload: String,
    /// The server, as in `run`.
    #[arg(default_value = "")]
    pub target: String,
    /// An option of the workload; repeatable.
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Of the rows.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How long the server may leave a statement unanswered before the load fails; an index build is one statement.
    #[arg(long, value_name = "SECONDS", default_value_t = LONG.as_secs_f64())]
    pub answer_limit: f64,
}

impl LoadArguments {
    /// How long a statement may take.
    pub fn answer_limit(&self) -> Result<Duration> {
        require_answer_limit(self.answer_limit)?;
        Ok(Duration::from_secs_f64(self.answer_limit))
    }
}

#[derive(Args)]
pub struct StatementsArguments {
    /// Whose statements.
    pub workload: String,
    /// An option of the workload; repeatable.
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Read options as one JSON object from the standard input, too: those of a captured workload are many.
    #[arg(long)]
    pub options_on_stdin: bool,
    /// From how many transactions of a client to take parameters.
    #[arg(long, default_value_t = TRANSACTIONS, value_name = "N")]
    pub transactions: usize,
    /// Of the transactions.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl StatementsArguments {
    /// The options of the arguments, and of the standard input where those are asked for.
    pub fn options(&self, stdin: impl Read) -> Result<Value> {
        let mut options = read_options(&self.options)?;
        if self.options_on_stdin {
            let more: Map<String, Value> = serde_json::from_reader(stdin)
                .map_err(|error| Error::new(format!("the standard input has no options: {error}")))?;
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
                .detail(
                    "it ends by itself after the work that its options name; a warm-up would do a part of it",
                )
                .hint("leave --warmup out"));
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

/// Reads `name=value` pairs; a value that looks like JSON is JSON, any other a string.
pub fn read_options(pairs: &[String]) -> Result<Map<String, Value>> {
    let mut options = Map::new();
    for pair in pairs {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Error::new(format!("\"{pair}\" is no option")).hint("write --option name=value")
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
            _ => panic!("it is a run"),
        }
    }

    fn duration_s(arguments: &[&str]) -> Option<f64> {
        let first = commands(arguments).unwrap().swap_remove(0);
        match first {
            Command::Run { duration_s, .. } => duration_s,
            other => panic!("{other:?} is no run"),
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
                _ => panic!("it is about statements"),
            }
        };
        assert_eq!(options(r#"{"b": "x"}"#).unwrap(), serde_json::json!({"a": 1, "b": "x"}));
        let error = options("[").unwrap_err();
        assert!(error.message.starts_with("the standard input has no options: "), "{}", error.message);
    }

    #[test]
    fn a_workload_that_ends_by_itself_has_no_warm_up() {
        let step = ["insert-benchmark-l.i0", "-o", SIZE, "-o", "step_seconds=1", "--warmup", "1"];
        let error = commands(&step).unwrap_err();
        assert_eq!(error.message, "workload \"insert-benchmark-l.i0\" cannot have a warm-up");
        assert_eq!(commands(&["pgbench-select", "--warmup", "1"]).unwrap().len(), 4);
    }
}
