//! Logs every transaction in pgbench's format, `client transaction latency_us script epoch_s epoch_us`, so
//! that a comparison of servers over time can attribute each one exactly. For one that was given up, the
//! latency is replaced by `failed:SQLSTATE:US:STATEMENT`, with its duration.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::clock::{Nanos, SECOND};
use crate::error::{Error, Result};

/// One thread's log of one arm.
pub struct TransactionLog {
    file: BufWriter<File>,
    path: String,
}

impl TransactionLog {
    /// Creates `PREFIX.THREAD`.
    pub fn create(prefix: &Path, thread: usize) -> Result<Self> {
        let path = format!("{}.{thread}", prefix.display());
        let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
        Ok(Self { file: BufWriter::with_capacity(64 << 10, file), path })
    }

    /// Adds a transaction that was committed at `ended`.
    pub fn write(&mut self, client: usize, number: u64, latency: Nanos, ended: Nanos) -> Result<()> {
        let mut line = [0u8; 128];
        let mut used = 0;
        for (value, end) in [
            (client as u64, b' '),
            (number, b' '),
            (latency / 1000, b' '),
            (0, b' '),
            (ended / SECOND, b' '),
            (ended % SECOND / 1000, b'\n'),
        ] {
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(value).as_bytes();
            line[used..used + digits.len()].copy_from_slice(digits);
            line[used + digits.len()] = end;
            used += digits.len() + 1;
        }
        self.file.write_all(&line[..used]).map_err(|error| unwritable(&self.path, &error))
    }

    /// Adds a transaction that was given up at `ended`; `number` is the number of committed ones before it.
    pub fn write_failed(
        &mut self,
        client: usize,
        number: u64,
        (code, statement): (&str, &str),
        latency: Nanos,
        ended: Nanos,
    ) -> Result<()> {
        let word =
            format!("failed:{code}:{}:{}", latency / 1000, statement.replace(char::is_whitespace, "_"));
        let (s, us) = (ended / SECOND, ended % SECOND / 1000);
        writeln!(self.file, "{client} {number} {word} 0 {s} {us}")
            .map_err(|error| unwritable(&self.path, &error))
    }

    /// Flushes the log to its file.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|error| unwritable(&self.path, &error))
    }
}

fn unwritable(path: &str, error: &std::io::Error) -> Error {
    Error::new(format!("could not write the transaction log \"{path}\": {error}"))
        .hint("check that the disk is not full")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_in_pgbenchs_format() {
        let prefix = std::env::temp_dir().join(format!("pgdyno-log-{}", std::process::id()));
        let mut log = TransactionLog::create(&prefix, 3).unwrap();
        log.write(7, 1, 1_234_567, 1_700_000_000_000_042_999).unwrap();
        log.write_failed(7, 1, ("23505", "insert order"), 9_876, 1_700_000_000_000_043_999).unwrap();
        log.flush().unwrap();
        let path = format!("{}.3", prefix.display());
        let lines = "7 1 1234 0 1700000000 42\n7 1 failed:23505:9:insert_order 0 1700000000 43\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
        std::fs::remove_file(path).unwrap();
    }
}
