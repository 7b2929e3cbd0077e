//! Runs the statements before and after a load: table creation, index builds and clean-up.

use crate::connect::{Connection, LONGEST_STATEMENT};
use crate::conninfo::ConnInfo;
use crate::error::{Error, Result};

/// Runs statements one after another on one connection.
pub fn run_serially(info: &ConnInfo, statements: &[String]) -> Result<()> {
    if statements.is_empty() {
        return Ok(());
    }
    let mut connection = Connection::open(info)?;
    connection.set_answer_limit(LONGEST_STATEMENT)?;
    // Without this setting, an index build would continue after the driver has exited. It does so on servers
    // before PostgreSQL 14, which lack the setting, and on systems other than Linux.
    let _ = connection.execute("SET client_connection_check_interval = '1s'");
    statements.iter().try_for_each(|sql| connection.execute(sql).map(|_| ()))
}

/// Runs stages one after another; the lists of a stage run concurrently.
pub fn run_stages(info: &ConnInfo, stages: &[Vec<Vec<String>>]) -> Result<()> {
    stages.iter().try_for_each(|lists| {
        std::thread::scope(|scope| {
            let running: Vec<_> = lists.iter().map(|list| scope.spawn(|| run_serially(info, list))).collect();
            running.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(Error::new("a thread that ran statements panicked")))
            })
        })
    })
}
