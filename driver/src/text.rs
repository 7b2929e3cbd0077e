//! Human-readable events.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::Instant;

use pgdyno_driver::control::Event;
use pgdyno_driver::record::Summary;
use pgdyno_driver::results::{GivenUp, Interval, Phase, RoleResult};

/// Describes an event; `None` if it is not shown.
pub fn describe(event: &Event) -> Option<String> {
    match event {
        Event::Ready { server_versions, connections } => {
            Some(format!("PostgreSQL {}, {connections} connections", server_versions.join(", ")))
        }
        Event::Interval(interval) => Some(describe_interval(interval)),
        Event::Phase(phase) => Some(describe_phase(phase)),
        _ => None,
    }
}

fn describe_interval(interval: &Interval) -> String {
    let roles: Vec<String> = interval
        .roles
        .iter()
        .map(|role| {
            let rate = role.transactions as f64 / interval.length_s;
            let p99 = role.latency_us.map_or_else(String::new, |l| format!(", p99 {}", milliseconds(l.p99)));
            format!("{} {rate:.0}/s{p99}", role.name)
        })
        .collect();
    format!("{:7.1} s  {}", interval.t_s, roles.join("   "))
}

fn describe_phase(phase: &Phase) -> String {
    let mut text = String::new();
    for arm in &phase.arms {
        for role in &arm.roles {
            let _ = writeln!(text, "{} {}: {}", phase.name, role.name, describe_role(role));
        }
    }
    if let Some(signal) = phase.interrupted_by {
        let _ = writeln!(text, "incomplete: terminated by {}", signal.name());
    }
    let busiest = phase.driver.thread_busy_shares.iter().copied().fold(0.0, f64::max);
    let _ = write!(
        text,
        "driver: {:.2} s of CPU, busiest thread {:.0} %, {:.0} MiB",
        phase.driver.cpu_s,
        busiest * 100.0,
        phase.driver.peak_memory_bytes as f64 / f64::from(1 << 20)
    );
    text
}

fn describe_role(role: &RoleResult) -> String {
    let mut text = format!("{} transactions, {:.1}/s", role.transactions, role.transactions_per_s);
    if let Some(latency) = &role.latency_us {
        let _ = write!(text, "\n  latency {}", describe_summary(latency));
    }
    if let Some(lag) = &role.lag_us {
        let _ = write!(text, "\n  schedule lag {}", describe_summary(lag));
    }
    for (code, count) in &role.retries {
        let _ = write!(text, "\n  retried after SQLSTATE {code}: {count}");
    }
    for GivenUp { sqlstate, statement, count } in &role.errors {
        let statement = if statement.is_empty() { String::new() } else { format!(" in {statement}") };
        let _ = write!(text, "\n  given up after SQLSTATE {sqlstate}{statement}: {count}");
    }
    text
}

fn describe_summary(summary: &Summary) -> String {
    let ms = milliseconds;
    format!(
        "p50 {}  p95 {}  p99 {}  p99.9 {}  max {}",
        ms(summary.p50),
        ms(summary.p95),
        ms(summary.p99),
        ms(summary.p999),
        ms(summary.max)
    )
}

fn milliseconds(microseconds: f64) -> String {
    format!("{:.3} ms", microseconds / 1e3)
}

/// Shows the rows loaded so far and the remaining time, on a terminal only.
pub struct Progress {
    began: Instant,
    shown_percent: u64,
    is_terminal: bool,
}

impl Progress {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { began: Instant::now(), shown_percent: 0, is_terminal: io::stderr().is_terminal() }
    }

    /// Updates the display, once per percent.
    pub fn show(&mut self, done: u64, total: u64) {
        let percent = done * 100 / total.max(1);
        if !self.is_terminal || percent == self.shown_percent {
            return;
        }
        self.shown_percent = percent;
        let left_s = self.began.elapsed().as_secs_f64() * (total - done) as f64 / done.max(1) as f64;
        eprint!("\r{percent:3} % of {total} rows, {left_s:.0} s left ");
        if done == total {
            eprintln!();
        }
    }
}
