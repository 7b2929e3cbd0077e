//! The options of a captured workload, read from JSON and checked.

use std::ops::RangeInclusive;

use serde::Deserialize;

use super::NAME;
use super::draw::{Draw, check_values};
use crate::error::{Error, Result};

/// Maximum parameter count of a protocol message.
const MAX_PARAMETERS: usize = u16::MAX as usize;
/// Average number of executions per call; the upper limit also applies to all calls of a transaction
/// together. Arbitrary: a whole transaction is kept in memory, and drawn again if it happens to have no call.
const TIMES: RangeInclusive<f64> = 0.0001..=10_000.0;

/// A captured workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapturedOptions {
    /// All statements.
    pub statements: Vec<CapturedStatement>,
    /// Texts that parameters draw from. Many parameters may draw from the same ones.
    pub samples: Vec<Sample>,
    /// The kinds of transactions they form.
    pub transactions: Vec<CapturedTransaction>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturedStatement {
    /// Its name in results.
    pub name: String,
    /// SQL with `$1`, `$2`, ….
    pub sql: String,
    /// Whether it is prepared; required if it has parameters.
    #[serde(default = "yes")]
    pub prepared: bool,
}

/// Texts to draw from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The texts.
    pub values: Vec<String>,
    /// Relative weights; default: equal.
    #[serde(default)]
    pub weights: Vec<f64>,
}

/// A kind of transaction.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturedTransaction {
    /// Relative frequency.
    pub weight: f64,
    /// Its calls, in order, including BEGIN and COMMIT.
    pub calls: Vec<CapturedCall>,
}

/// A call of a statement.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturedCall {
    /// Index of the statement.
    pub statement: usize,
    /// Average number of executions.
    #[serde(default = "once")]
    pub times: f64,
    /// Its parameters.
    #[serde(default)]
    pub parameters: Vec<Draw>,
}

fn once() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

impl CapturedOptions {
    /// Refuses invalid options.
    pub fn check(&self) -> Result<()> {
        if self.transactions.is_empty() {
            return Err(invalid("it has no transaction".into()));
        }
        self.samples.iter().enumerate().try_for_each(|(at, one)| {
            check_values(&one.values, &one.weights).map_err(|why| invalid(format!("sample {at}: {why}")))
        })?;
        self.transactions.iter().enumerate().try_for_each(|(at, one)| {
            let named = |what: &str| format!("transaction {at}: {what}");
            if !(one.weight > 0.0 && one.weight.is_finite()) {
                return Err(invalid(named(&format!("its weight cannot be {}", one.weight))));
            }
            let times = one.calls.iter().fold(0.0, |sum, call| sum + call.times);
            if one.calls.is_empty() || !TIMES.contains(&times) {
                return Err(invalid(named(&format!("its calls total {times} executions"))));
            }
            one.calls.iter().enumerate().try_for_each(|(number, call)| {
                self.check_call(one, number).map_err(|why| {
                    invalid(named(&format!("call {number}, of statement {}: {why}", call.statement)))
                })
            })
        })
    }

    fn check_call(
        &self,
        transaction: &CapturedTransaction,
        number: usize,
    ) -> std::result::Result<(), String> {
        let call = &transaction.calls[number];
        let Some(statement) = self.statements.get(call.statement) else {
            return Err(format!("there are {} statements", self.statements.len()));
        };
        if !TIMES.contains(&call.times) {
            return Err(format!("it cannot be executed {} times", call.times));
        }
        if !statement.prepared && !call.parameters.is_empty() {
            return Err(format!("it has parameters but is not prepared ({})", statement.name));
        }
        if call.parameters.len() > MAX_PARAMETERS {
            return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
        }
        let earlier: Vec<usize> =
            transaction.calls[..=number].iter().map(|one| one.parameters.len()).collect();
        call.parameters
            .iter()
            .enumerate()
            .try_for_each(|(at, draw)| draw.check(self.samples.len(), &earlier, (number, at)))
            .map_err(|why| format!("{why} ({})", statement.name))
    }
}

fn invalid(why: String) -> Error {
    Error::new(format!("cannot run workload \"{NAME}\"")).detail(why)
}
