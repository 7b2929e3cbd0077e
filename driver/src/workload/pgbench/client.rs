//! A client of a pgbench script: draws an account, a branch, a teller and an amount per transaction.

use super::{ACCOUNTS, BRANCHES, Call, ROLE, SUMMED, TELLERS};
use crate::random::Random;
use crate::workload::options::PgbenchOptions;
use crate::workload::{Client, Next, Place, Transaction};

/// The maximum absolute amount of a transaction.
const MAX_DELTA: i64 = 5000;

/// One client's stream of transactions.
pub(super) struct PgbenchClient {
    calls: &'static [Call],
    scale: i64,
    random: Random,
}

impl PgbenchClient {
    pub(super) fn new(calls: &'static [Call], options: &PgbenchOptions, place: Place) -> Self {
        let random = Random::stream(place.seed, ROLE, place.client);
        Self { calls, scale: options.scale, random }
    }

    fn draw_number(&mut self, per_scale: i64) -> i64 {
        self.random.between(1, per_scale * self.scale)
    }
}

impl Client for PgbenchClient {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        let account = self.draw_number(ACCOUNTS);
        let branch = self.draw_number(BRANCHES);
        let teller = self.draw_number(TELLERS);
        let delta = self.random.between(-MAX_DELTA, MAX_DELTA);
        for (statement, call) in self.calls.iter().enumerate() {
            let written = transaction.call(statement);
            match call {
                Call::Begin | Call::End => written,
                Call::UpdateAccount => written.int(delta).int(account),
                Call::SelectAccount => written.int(account),
                Call::SumAccounts => {
                    // `SUMMED` accounts exist from there on.
                    written.int(self.random.between(1, ACCOUNTS * self.scale - SUMMED + 1))
                }
                Call::UpdateTeller => written.int(delta).int(teller),
                Call::UpdateBranch => written.int(delta).int(branch),
                Call::InsertHistory => written.int(teller).int(branch).int(account).int(delta),
            };
        }
        Next::Ready
    }
}
