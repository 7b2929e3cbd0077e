//! Runs statements that are not load: tables before it, index builds and clean-up after it.

use crate::connect::{Connection, LONG};
use crate::conninfo::ConnInfo;
use crate::error::{Error, Result};

/// Runs statements one after the other on one connection.
pub fn run_serially(info: &ConnInfo, statements: &[String]) -> Result<()> {
    if statements.is_empty() {
        return Ok(());
    }
    let mut connection = Connection::open(info)?;
    connection.set_answer_limit(LONG)?;
    // An index build whose driver has gone would go on without this. Servers before 14 do not know it, nor do
    // those on other systems than Linux: there it does go on.
    let _ = connection.execute("SET client_connection_check_interval = '1s'");
    statements.iter().try_for_each(|sql| connection.execute(sql).map(|_| ()))
}

/// Runs stages one after the other; the lists of a stage run at the same time.
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
