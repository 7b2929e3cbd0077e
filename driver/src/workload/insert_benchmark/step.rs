//! The ten steps, and the clients of each.
//!
//! | step            | rows per commit | rows/s per client | roles of a table             | ends after     |
//! |-----------------|-----------------|-------------------|------------------------------|----------------|
//! | l.i0            | 100             | any               | insert (maker)               | X rows         |
//! | l.x             | 100             | any               | insert (maker)               | one statement  |
//! | l.i1            | 50              | any               | insert, delete, maker        | Y rows         |
//! | l.i2            | 5               | any               | insert, delete, maker        | Z rows         |
//! | qr100, qp100, … | 50              | 100, 500, 1000    | insert, delete, maker, query | seconds × rate |
//!
//! A maker in parentheses is an idle connection, in faithful mode only. Inserts and deletes may have a rate;
//! queries and makers have none. Client i of every role works on table i+1. Only clients with the same index
//! wait for each other (`Next::Blocked`), so they belong on one thread.
//!
//! `l.x` inserts 100 rows per client, as in the reference's code; its documentation states 100 in total.

use std::sync::Arc;

use crate::error::Result;
use crate::workload::{Arrivals, Client, Pace, Role};

use super::delete::{self, Deleter};
use super::insert::{self, Inserter};
use super::ledger::{Ledger, Window};
use super::maker::{self, Maker};
use super::query::{self, PointQueries, QueryEnd, RangeQueries};
use super::rows::RowWriter;
use super::timestamp::{SECONDS_PER_STEP, StatementClock};
use super::{Ends, Mode, Options, stream};

/// A step of the benchmark, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // described in the table above
pub enum Step {
    LI0,
    LX,
    LI1,
    LI2,
    Qr100,
    Qp100,
    Qr500,
    Qp500,
    Qr1000,
    Qp1000,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queries {
    None,
    Ranges,
    Points,
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 10] = [
        Self::LI0,
        Self::LX,
        Self::LI1,
        Self::LI2,
        Self::Qr100,
        Self::Qp100,
        Self::Qr500,
        Self::Qp500,
        Self::Qr1000,
        Self::Qp1000,
    ];

    /// Its published name.
    pub fn name(self) -> &'static str {
        match self {
            Self::LI0 => "l.i0",
            Self::LX => "l.x",
            Self::LI1 => "l.i1",
            Self::LI2 => "l.i2",
            Self::Qr100 => "qr100",
            Self::Qp100 => "qp100",
            Self::Qr500 => "qr500",
            Self::Qp500 => "qp500",
            Self::Qr1000 => "qr1000",
            Self::Qp1000 => "qp1000",
        }
    }

    /// Rows per insert and delete statement.
    pub fn rows_per_commit(self) -> u64 {
        match self {
            Self::LI0 | Self::LX => 100,
            Self::LI2 => 5,
            _ => 50,
        }
    }

    /// Rows per second that each client inserts, and deletes; `None`: no limit.
    pub fn rows_per_second(self) -> Option<u64> {
        match self {
            Self::LI0 | Self::LX | Self::LI1 | Self::LI2 => None,
            Self::Qr100 | Self::Qp100 => Some(100),
            Self::Qr500 | Self::Qp500 => Some(500),
            Self::Qr1000 | Self::Qp1000 => Some(1000),
        }
    }

    /// Insert statements per client; `None`: until the caller stops it.
    fn statements(self, options: &Options) -> Option<u64> {
        let rows = match (self, self.rows_per_second()) {
            (Self::LI0, _) => options.rows.i0,
            (Self::LX, _) => self.rows_per_commit(),
            _ if options.ends == Ends::Time => return None,
            (Self::LI1, _) => options.rows.i1,
            (_, None) => options.rows.i2,
            (_, Some(rate)) => rate * options.step_seconds,
        };
        Some(rows.div_ceil(self.rows_per_commit()))
    }

    fn has_deletes(self, options: &Options) -> bool {
        options.deletes && !matches!(self, Self::LI0 | Self::LX)
    }

    fn queries(self) -> Queries {
        match self {
            Self::LI0 | Self::LX | Self::LI1 | Self::LI2 => Queries::None,
            Self::Qr100 | Self::Qr500 | Self::Qr1000 => Queries::Ranges,
            Self::Qp100 | Self::Qp500 | Self::Qp1000 => Queries::Points,
        }
    }

    fn window(self, options: &Options) -> Window {
        if !self.has_deletes(options) {
            Window::InsertsOnly
        } else if options.mode == Mode::Faithful || self.rows_per_second().is_some() {
            Window::Even
        } else {
            Window::DeletesFollow
        }
    }

    fn pace(self, options: &Options) -> Pace {
        let Some(rows_per_second) = self.rows_per_second() else { return Pace::Closed };
        let statements_per_second = rows_per_second.div_ceil(self.rows_per_commit());
        match options.mode {
            Mode::Faithful => Pace::Burst { burst: statements_per_second as u32 },
            Mode::Corrected => Pace::Open { rate: statements_per_second as f64, arrivals: Arrivals::Uniform },
        }
    }

    fn clock(self, options: &Options) -> StatementClock {
        let statements_per_second = match self.rows_per_second() {
            Some(rows) => rows.div_ceil(self.rows_per_commit()),
            None => options.timestamps.statements_per_second,
        };
        let start_s = options.timestamps.start_s + self as i64 * SECONDS_PER_STEP;
        StatementClock { start_s, statements_per_second }
    }
}

/// The clients of a step, by role: `insert`; `delete` and `maker`; `query`.
///
/// All roles end by themselves (`Next::Finished`) unless option `ends` is `time`. Fails if `options` are
/// invalid.
pub fn roles(step: Step, options: &Options) -> Result<Vec<Role>> {
    options.check()?;
    let clients = StepClients::new(step, options);
    let mut roles = vec![clients.inserters()];
    if step.has_deletes(options) {
        roles.push(clients.deleters());
    }
    if step.has_deletes(options) || options.mode == Mode::Faithful {
        roles.push(clients.makers());
    }
    if step.queries() != Queries::None {
        roles.push(clients.queries());
    }
    Ok(roles)
}

/// Creates the clients of a step, for all tables.
struct StepClients<'a> {
    step: Step,
    options: &'a Options,
    /// By client.
    ledgers: Vec<Arc<Ledger>>,
}

impl<'a> StepClients<'a> {
    fn new(step: Step, options: &'a Options) -> Self {
        let ledger = |_| Arc::new(Ledger::new(step.window(options), step.statements(options)));
        Self { step, options, ledgers: (0..options.clients).map(ledger).collect() }
    }

    fn clients(&self, make: impl Fn(u64, Arc<Ledger>) -> Box<dyn Client>) -> Vec<Box<dyn Client>> {
        (0..).zip(&self.ledgers).map(|(client, ledger)| make(client, Arc::clone(ledger))).collect()
    }

    fn inserters(&self) -> Role {
        let Options { seed, domains, data_length, .. } = *self.options;
        let (step, clock) = (self.step, self.step.clock(self.options));
        let clients = self.clients(|client, ledger| {
            let random = stream(seed, step, insert::ROLE, client);
            let rows = RowWriter::new(random, domains, data_length);
            Box::new(Inserter::new(client, ledger, rows, step.rows_per_commit(), clock))
        });
        Role { name: insert::ROLE, statements: insert::statements(), clients, pace: step.pace(self.options) }
    }

    fn deleters(&self) -> Role {
        let rows_per_commit = self.step.rows_per_commit();
        let clients = self.clients(|client, ledger| Box::new(Deleter::new(client, ledger, rows_per_commit)));
        let pace = self.step.pace(self.options);
        Role { name: delete::ROLE, statements: delete::statements(), clients, pace }
    }

    fn makers(&self) -> Role {
        let clients = self.clients(|client, ledger| Box::new(Maker::new(client, ledger)));
        Role { name: maker::ROLE, statements: maker::statements(), clients, pace: Pace::Closed }
    }

    fn queries(&self) -> Role {
        let Options { clients: tables, seed, domains, mode, .. } = *self.options;
        let is_point = self.step.queries() == Queries::Points;
        let queries_per_check = if mode == Mode::Faithful { 16 } else { 1 };
        let clients = self.clients(|client, ledger| {
            let random = stream(seed, self.step, query::ROLE, client);
            let end = QueryEnd::new(ledger, queries_per_check);
            if is_point {
                Box::new(PointQueries::new(client, end, random))
            } else {
                Box::new(RangeQueries::new(client, end, domains, random))
            }
        });
        let statements =
            if is_point { query::point_statements(tables) } else { query::range_statements(tables) };
        Role { name: query::ROLE, statements, clients, pace: Pace::Closed }
    }
}
