//! A transaction, as a client wrote it: calls of statements with their parameters as text.
//!
//! It owns its buffers, so that a client that makes a million transactions allocates for the first few only.

use std::ops::Range;

use super::StatementId;
use crate::protocol::answer::value_of;

/// Where NULL is: in no text.
const NULL: Range<usize> = usize::MAX..usize::MAX;

/// A parameter that an earlier call's answer gives.
struct Awaited {
    /// Index of the parameter.
    argument: usize,
    /// Index of the call, and of the column of its first row.
    call: usize,
    column: usize,
}

/// One call of a statement.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which statement.
    pub statement: StatementId,
    /// Whether the first column of its first row goes back to the client (`Client::receive`).
    pub wants_value: bool,
    arguments: Range<usize>,
}

/// A transaction: calls in order. Whether it begins with BEGIN is up to the workload.
#[derive(Default)]
pub struct Transaction {
    calls: Vec<Call>,
    arguments: Vec<Range<usize>>,
    text: Vec<u8>,
    awaited: Vec<Awaited>,
}

impl Transaction {
    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.arguments.clear();
        self.text.clear();
        self.awaited.clear();
    }

    /// Adds a call of `statement`; its parameters follow.
    pub fn call(&mut self, statement: StatementId) -> &mut Self {
        let at = self.arguments.len();
        self.calls.push(Call { statement, wants_value: false, arguments: at..at });
        self
    }

    /// Adds a call whose first value goes back to the client.
    pub fn call_for_value(&mut self, statement: StatementId) -> &mut Self {
        self.call(statement);
        if let Some(call) = self.calls.last_mut() {
            call.wants_value = true;
        }
        self
    }

    /// Adds an integer parameter to the last call.
    pub fn int(&mut self, value: i64) -> &mut Self {
        self.text(|text| text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()))
    }

    /// Adds a parameter to the last call, or the whole text of an unprepared one; `write` appends it.
    pub fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        let start = self.text.len();
        write(&mut self.text);
        self.arguments.push(start..self.text.len());
        if let Some(call) = self.calls.last_mut() {
            call.arguments.end = self.arguments.len();
        }
        self
    }

    /// Adds NULL as a parameter of the last call.
    pub fn null(&mut self) -> &mut Self {
        self.text(|_| {});
        if let Some(range) = self.arguments.last_mut() {
            *range = NULL;
        }
        self
    }

    /// Adds a parameter to the last call: what an earlier call returns in a column of its first row, as text.
    /// Until that has arrived, and if there is none, it is NULL.
    pub fn returned(&mut self, call: usize, column: usize) -> &mut Self {
        self.null();
        self.awaited.push(Awaited { argument: self.arguments.len() - 1, call, column });
        self
    }

    /// Gives a call's first row to the parameters that wait for it; an empty one if it has returned none. After
    /// a transaction is tried again, the last one counts.
    pub fn receive(&mut self, call: usize, row: &[u8]) {
        for one in self.awaited.iter().filter(|one| one.call == call) {
            let start = self.text.len();
            let value = value_of(row, one.column);
            self.text.extend_from_slice(value.unwrap_or_default());
            self.arguments[one.argument] = if value.is_some() { start..self.text.len() } else { NULL };
        }
    }

    /// The calls, in order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The parameters of a call, in PostgreSQL's text format; `None` is NULL.
    pub fn arguments(&self, call: &Call) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        self.arguments[call.arguments.clone()].iter().map(|range| self.text.get(range.clone()))
    }
}
