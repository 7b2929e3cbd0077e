//! A transaction as written by a client: calls of statements, with parameters as text.
//!
//! It reuses its buffers: a client allocates memory only for its first few transactions.

use std::ops::Range;

use super::StatementId;
use super::data_set::write_sum;
use crate::protocol::answer::value_of;

/// The range of NULL: outside any text.
const NULL: Range<usize> = usize::MAX..usize::MAX;

/// A parameter taken from an earlier call's answer.
struct Awaited {
    /// Index of the parameter.
    argument: usize,
    /// Index of the call.
    call: usize,
    /// Index of the column in its first row.
    column: usize,
    /// Added to an integer, unless 0.
    plus: i64,
}

/// One call of a statement.
#[derive(Clone, Debug)]
pub struct Call {
    /// The statement.
    pub statement: StatementId,
    /// Whether the first column of its first row is passed to the client (`Client::receive`).
    pub wants_value: bool,
    arguments: Range<usize>,
}

/// A transaction: calls in order. BEGIN, if any, is one of them.
#[derive(Default)]
pub struct Transaction {
    calls: Vec<Call>,
    arguments: Vec<Range<usize>>,
    text: Vec<u8>,
    awaited: Vec<Awaited>,
}

impl Transaction {
    /// Clears the transaction and keeps its memory.
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

    /// Adds a call whose first value is passed to the client.
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

    /// Adds a parameter to the last call, or the whole text of an unprepared statement; `write` appends it.
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

    /// Adds a parameter to the last call: a column of the first row returned by an earlier call, as text. It
    /// is NULL until that row arrives, and if there is none. `plus` is added to an integer.
    pub fn returned(&mut self, call: usize, column: usize, plus: i64) -> &mut Self {
        self.null();
        self.awaited.push(Awaited { argument: self.arguments.len() - 1, call, column, plus });
        self
    }

    /// Sets the parameters taken from a call's first row; `row` is empty if it returned none. After a retry,
    /// the last row counts.
    pub fn receive(&mut self, call: usize, row: &[u8]) {
        for one in self.awaited.iter().filter(|one| one.call == call) {
            let start = self.text.len();
            let value = value_of(row, one.column);
            write_sum(value.unwrap_or_default(), one.plus, &mut self.text);
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
