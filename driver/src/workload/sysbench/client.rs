//! A client of a sysbench script: draws tables, keys and contents, and writes the transactions.

use super::statements::{Ids, Kind};
use super::{ROLE, Script, Step};
use crate::random::{Random, Sampler};
use crate::workload::data_set::write_integer;
use crate::workload::options::SysbenchOptions;
use crate::workload::{Client, Next, Place, Transaction};

/// Digit groups in column `c`.
pub(super) const C_GROUPS: usize = 10;
/// Digit groups in column `pad`.
pub(super) const PAD_GROUPS: usize = 5;
/// Keys per statement of `select_random_points`, and ranges per statement of `select_random_ranges`.
const RANDOM_POINTS: u32 = 10;
/// Distance from the first to the last key of a range of `select_random_ranges`.
const RANDOM_RANGE_DELTA: i64 = 5;

/// One client's stream of transactions.
pub(super) struct SysbenchClient {
    steps: &'static [Step],
    is_transaction: bool,
    ids: Ids,
    tables: i64,
    range_size: i64,
    /// Draws `id` and `k` from the whole table.
    keys: Sampler,
    /// Draws from this client's segment of the table.
    segment: Sampler,
    random: Random,
}

impl SysbenchClient {
    pub(super) fn new(script: &'static Script, options: &SysbenchOptions, ids: Ids, place: Place) -> Self {
        let (low, high) = segment(options.table_size, place);
        Self {
            steps: script.steps,
            is_transaction: script.is_transaction(options),
            ids,
            tables: options.tables,
            range_size: options.range_size,
            keys: Sampler::new(options.distribution, 1, options.table_size),
            segment: Sampler::new(options.distribution, low, high),
            random: Random::stream(place.seed, ROLE, place.client),
        }
    }

    fn write_step(&mut self, step: Step, to: &mut Transaction) {
        match step {
            Step::PointSelects(count) => self.point_selects(count, to),
            Step::Range(kind) => self.range(kind, to),
            Step::IndexUpdate => self.by_key(Kind::IndexUpdate, to),
            Step::NonIndexUpdate => self.non_index_update(to),
            Step::Delete => self.by_key(Kind::Delete, to),
            Step::DeleteInsert => self.delete_insert(to),
            Step::Insert => self.insert(to),
            Step::RandomPoints => self.random_points(to),
            Step::RandomRanges => self.random_ranges(to),
        }
    }

    fn point_selects(&mut self, count: u32, to: &mut Transaction) {
        let table = self.draw_table();
        for _ in 0..count {
            to.call(self.ids.of_table(Kind::PointSelect, table)).int(self.draw_key());
        }
    }

    fn range(&mut self, kind: Kind, to: &mut Transaction) {
        let table = self.draw_table();
        let first = self.draw_key();
        to.call(self.ids.of_table(kind, table)).int(first).int(first + self.range_size - 1);
    }

    fn by_key(&mut self, kind: Kind, to: &mut Transaction) {
        let table = self.draw_table();
        to.call(self.ids.of_table(kind, table)).int(self.draw_key());
    }

    fn non_index_update(&mut self, to: &mut Transaction) {
        let table = self.draw_table();
        to.call(self.ids.of_table(Kind::NonIndexUpdate, table))
            .text(|out| self.random.write_digit_groups(C_GROUPS, out))
            .int(self.draw_key());
    }

    /// Deletes a row and inserts another one with the same id, so that the number of rows stays constant.
    fn delete_insert(&mut self, to: &mut Transaction) {
        let table = self.draw_table();
        let id = self.draw_key();
        to.call(self.ids.of_table(Kind::Delete, table)).int(id);
        to.call(self.ids.of_table(Kind::Insert, table))
            .int(id)
            .int(self.draw_key())
            .text(|out| self.random.write_digit_groups(C_GROUPS, out))
            .text(|out| self.random.write_digit_groups(PAD_GROUPS, out));
    }

    fn insert(&mut self, to: &mut Transaction) {
        let table = self.random.between(1, self.tables);
        let k = self.draw_key();
        to.call(self.ids.only(Kind::InsertText)).text(|out| {
            out.extend_from_slice(b"INSERT INTO sbtest");
            write_integer(table, out);
            out.extend_from_slice(b" (k, c, pad) VALUES (");
            write_integer(k, out);
            out.extend_from_slice(b", '");
            self.random.write_digit_groups(C_GROUPS, out);
            out.extend_from_slice(b"', '");
            self.random.write_digit_groups(PAD_GROUPS, out);
            out.extend_from_slice(b"')");
        });
    }

    fn random_points(&mut self, to: &mut Transaction) {
        to.call(self.ids.only(Kind::RandomPoints));
        for _ in 0..RANDOM_POINTS {
            to.int(self.segment.draw(&mut self.random));
        }
    }

    fn random_ranges(&mut self, to: &mut Transaction) {
        to.call(self.ids.only(Kind::RandomRanges));
        for _ in 0..RANDOM_POINTS {
            let first = self.segment.draw(&mut self.random);
            to.int(first).int(first + RANDOM_RANGE_DELTA);
        }
    }

    /// A table, counted from 0.
    fn draw_table(&mut self) -> usize {
        self.random.between(0, self.tables - 1) as usize
    }

    fn draw_key(&mut self) -> i64 {
        self.keys.draw(&mut self.random)
    }
}

impl Client for SysbenchClient {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        if self.is_transaction {
            transaction.call(self.ids.only(Kind::Begin));
        }
        for step in self.steps {
            self.write_step(*step, transaction);
        }
        if self.is_transaction {
            transaction.call(self.ids.only(Kind::Commit));
        }
        Next::Ready
    }
}

/// The first and the last key of a client's segment. As in sysbench, neighbouring segments share a key, and
/// the first segment starts at 0, where there is no row.
pub(super) fn segment(table_size: i64, place: Place) -> (i64, i64) {
    let length = table_size as f64 / place.clients as f64;
    let low = length * place.client as f64;
    (low as i64, (low + length) as i64)
}
