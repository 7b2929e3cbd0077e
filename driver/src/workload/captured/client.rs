//! A client of a captured workload: chooses a kind of transaction, and draws its calls and their parameters.

use std::sync::Arc;

use super::ROLE;
use super::options::{CapturedOptions, CapturedTransaction};
use super::parameter::{Choice, Parameter, Texts};
use crate::random::Random;
use crate::workload::data_set::write_integer;
use crate::workload::{Client, Next, Place, StatementId, Transaction};

/// One client's stream of transactions.
pub(super) struct CapturedClient {
    choice: Choice,
    transactions: Vec<Vec<Call>>,
    random: Random,
}

struct Call {
    statement: StatementId,
    /// The whole statement, if it is not prepared.
    text: Option<String>,
    times: f64,
    parameters: Vec<Parameter>,
    /// Parameters of its last execution in the current transaction; `None` is NULL.
    drawn: Vec<Option<Vec<u8>>>,
    /// Index of its last execution among the calls of the current transaction.
    place: Option<usize>,
    /// Number of its executions in the current transaction, without those of the statement's other calls.
    executions: u64,
}

impl CapturedClient {
    pub(super) fn new(options: &CapturedOptions, samples: &[Arc<Texts>], place: Place) -> Self {
        Self {
            choice: Choice::new(options.transactions.iter().map(|one| one.weight)),
            transactions: options
                .transactions
                .iter()
                .map(|one| calls(options, one, samples, place))
                .collect(),
            random: Random::stream(place.seed, ROLE, place.client),
        }
    }
}

fn calls(
    options: &CapturedOptions,
    transaction: &CapturedTransaction,
    samples: &[Arc<Texts>],
    place: Place,
) -> Vec<Call> {
    let call = |one: &super::options::CapturedCall| Call {
        statement: one.statement,
        text: Some(&options.statements[one.statement]).filter(|it| !it.prepared).map(|it| it.sql.clone()),
        times: one.times,
        parameters: one
            .parameters
            .iter()
            .map(|draw| Parameter::new(draw, samples, place.client, place.clients))
            .collect(),
        drawn: vec![None; one.parameters.len()],
        place: None,
        executions: 0,
    };
    transaction.calls.iter().map(call).collect()
}

impl Client for CapturedClient {
    /// Chooses again if all calls of a transaction were randomly left out.
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        while transaction.calls().is_empty() {
            let calls = &mut self.transactions[self.choice.draw(&mut self.random)];
            for call in calls.iter_mut() {
                call.place = None;
                call.executions = 0;
            }
            for at in 0..calls.len() {
                let times = calls[at].times;
                let more = self.random.fraction() < times.fract();
                for _ in 0..times as u64 + u64::from(more) {
                    write_call(calls, at, &mut self.random, transaction);
                }
            }
        }
        Next::Ready
    }
}

/// Draws the parameters of one call. They may repeat those of earlier calls and earlier ones of the same
/// call.
fn write_call(calls: &mut [Call], at: usize, random: &mut Random, to: &mut Transaction) {
    let (before, rest) = calls.split_at_mut(at);
    let Call { statement, text, parameters, drawn, place, executions, .. } = &mut rest[0];
    *place = Some(to.calls().len());
    *executions += 1;
    to.call(*statement);
    if let Some(text) = text {
        to.text(|out| out.extend_from_slice(text.as_bytes()));
    }
    for (number, parameter) in parameters.iter_mut().enumerate() {
        if let Parameter::Returned { call, column, plus } = parameter
            && let Some(place) = before.get(*call).and_then(|earlier| earlier.place)
        {
            to.returned(place, *column, *plus);
            continue;
        }
        let mut value = drawn[number].take().unwrap_or_default();
        value.clear();
        let earlier = |call: usize, other: usize| match before.get(call) {
            Some(earlier) => earlier.drawn[other].as_deref(),
            None => drawn[other].as_deref(),
        };
        let is_value = if matches!(parameter, Parameter::Ordinal) {
            let others = before.iter().filter(|one| one.statement == *statement);
            write_integer(others.fold(*executions, |sum, one| sum + one.executions), &mut value);
            true
        } else {
            parameter.draw(random, &earlier, &mut value)
        };
        if is_value {
            to.text(|text| text.extend_from_slice(&value));
        } else {
            to.null();
        }
        drawn[number] = is_value.then_some(value);
    }
}
