//! Jobs and commands, as they come on standard input.

use pgdyno_driver::commands::Command;
use pgdyno_driver::job::Job;

/// As many clients as fit into a moment; the limit itself is the job's own.
const MOST_CLIENTS: u64 = 4;

/// A line is a command, an error, or neither; a job has a plan or an error with a text.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = serde_json::from_str::<Command>(text);
    let Ok(mut job) = Job::parse(text) else { return };
    job.clients = job.clients.min(MOST_CLIENTS);
    match job.plan() {
        Ok((load, clients)) => assert_eq!(load.arms.len(), clients.len()),
        Err(error) => assert!(!error.message.is_empty()),
    }
}
