//! How a parameter is drawn.

use serde::Deserialize;

use super::values::{write_decimal, write_element, write_letters, write_sum, write_uuid};
use crate::random::{Distribution, Random, Sampler};
use crate::workload::data_set::write_integer;

/// Between numbers so far apart, not every one can be drawn.
const MAX_DISTANCE: u64 = 1 << 53;
/// Values of an array. Arbitrary.
const MAX_LENGTH: u32 = 10_000;
/// Of a row that a server returns.
const MAX_COLUMNS: usize = 1664;
/// Letters. Arbitrary.
const MAX_TEXT: u32 = 1 << 14;
/// Digits after the point. Arbitrary: the most that a 64-bit integer can count.
const MAX_SCALE: u32 = 18;

/// Where a parameter comes from. Its unit is that of the parameter's type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "draw", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Draw {
    /// Always NULL.
    Null,
    /// Always the same text.
    Constant {
        /// The text.
        value: String,
    },
    /// An integer between two others, both included.
    Integer {
        /// The lowest.
        low: i64,
        /// The highest.
        high: i64,
        /// Which are more likely than others.
        #[serde(default)]
        distribution: Distribution,
    },
    /// One of several texts.
    OneOf {
        /// The texts.
        values: Vec<String>,
        /// How likely each is beside the others; all are equally likely if this is missing.
        #[serde(default)]
        weights: Vec<f64>,
    },
    /// A number from a histogram: between each bound and the next, numbers are equally many.
    Histogram {
        /// In units of the last digit.
        bounds: Vec<i64>,
        /// Digits after the point.
        #[serde(default)]
        scale: u32,
    },
    /// A text of random letters.
    Text {
        /// The least number of letters.
        least: u32,
        /// The greatest.
        most: u32,
    },
    /// Numbers that no other call has had: each client counts in steps of its own, and each of `parts` does that
    /// draw from the same column.
    Sequence {
        /// The first.
        start: i64,
        /// Which of the parts this is.
        #[serde(default)]
        part: u32,
        /// How many there are.
        #[serde(default = "one")]
        parts: u32,
    },
    /// A random UUID.
    Uuid,
    /// What an earlier parameter of the same transaction was, plus a number unless that is 0.
    SameAs {
        /// Index of the call within the transaction; its last execution counts.
        call: usize,
        /// Index of the parameter within the call.
        parameter: usize,
        /// Is added to an integer.
        #[serde(default)]
        plus: i64,
    },
    /// What an earlier call of the same transaction has returned in its first row; NULL if that has none, and in
    /// a pipeline, where nothing has been returned yet.
    Returned {
        /// Index of the call within the transaction; its last execution counts.
        call: usize,
        /// Index of the column.
        column: usize,
    },
    /// An array of values that are drawn one by one.
    Array {
        /// How each is drawn.
        of: Box<Draw>,
        /// How many there are.
        length: u32,
    },
    /// One of several ways to draw.
    Mixture {
        /// The ways, each with how likely it is beside the others.
        parts: Vec<(f64, Draw)>,
    },
}

impl Draw {
    /// Says why nothing can be drawn so, if nothing can. `earlier` are the numbers of parameters of the calls up
    /// to this one, `at` is the call and the parameter that this is.
    pub(super) fn check(&self, earlier: &[usize], at: (usize, usize)) -> Result<(), String> {
        match self {
            Self::Integer { low, high, .. } => {
                require(low <= high && low.abs_diff(*high) < MAX_DISTANCE, || {
                    format!("no integer can be drawn from {low} to {high}")
                })
            }
            Self::OneOf { values, weights } => check_values(values, weights),
            Self::Histogram { bounds, scale } => check_histogram(bounds, *scale),
            Self::Text { least, most } => require(least <= most && *most <= MAX_TEXT, || {
                format!("no text can have {least} to {most} letters")
            }),
            Self::SameAs { call, parameter, .. } => {
                let is_there = earlier.get(*call).is_some_and(|count| parameter < count);
                require(is_there && (*call, *parameter) < at, || {
                    format!("parameter {parameter} of call {call} does not stand before it")
                })
            }
            Self::Returned { call, column } => require(*call < at.0 && *column < MAX_COLUMNS, || {
                format!("call {call} does not return column {column} before it")
            }),
            Self::Array { of, length } => {
                require(*length <= MAX_LENGTH, || format!("{length} values are too many for an array"))?;
                check_part(of, earlier, at)
            }
            Self::Mixture { parts } => check_mixture(parts, earlier, at),
            Self::Sequence { part, parts, .. } => {
                require(part < parts, || format!("there is no part {part} of {parts}"))
            }
            Self::Null | Self::Constant { .. } | Self::Uuid => Ok(()),
        }
    }
}

fn one() -> u32 {
    1
}

fn require(is_right: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(why()) }
}

fn check_values(values: &[String], weights: &[f64]) -> Result<(), String> {
    require(!values.is_empty(), || "there is no value to choose from".into())?;
    require(weights.is_empty() || weights.len() == values.len(), || {
        format!("{} values have {} weights", values.len(), weights.len())
    })?;
    check_weights(weights)
}

fn check_histogram(bounds: &[i64], scale: u32) -> Result<(), String> {
    require(bounds.len() >= 2, || "a histogram has at least two bounds".into())?;
    require(bounds.is_sorted(), || "the bounds of a histogram do not ascend".into())?;
    require(scale <= MAX_SCALE, || format!("{scale} digits after the point are too many"))
}

fn check_mixture(parts: &[(f64, Draw)], earlier: &[usize], at: (usize, usize)) -> Result<(), String> {
    require(!parts.is_empty(), || "a mixture has no parts".into())?;
    check_weights(&parts.iter().map(|(weight, _)| *weight).collect::<Vec<_>>())?;
    parts.iter().try_for_each(|(_, part)| check_part(part, earlier, at))
}

/// Refuses what is drawn of parts itself, and what is not drawn before the transaction begins.
fn check_part(part: &Draw, earlier: &[usize], at: (usize, usize)) -> Result<(), String> {
    let is_simple = !matches!(part, Draw::Mixture { .. } | Draw::Array { .. } | Draw::Returned { .. });
    require(is_simple, || "a part of a mixture or an array has parts, or is returned".into())?;
    part.check(earlier, at)
}

fn check_weights(weights: &[f64]) -> Result<(), String> {
    let are_weights = weights.iter().all(|weight| *weight >= 0.0 && weight.is_finite());
    require(are_weights && (weights.is_empty() || weights.iter().sum::<f64>() > 0.0), || {
        "weights are numbers from 0 on, and not all of them 0".into()
    })
}

/// Chooses an index with probabilities in proportion to weights.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    sums: Vec<f64>,
}

impl Choice {
    pub(super) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let sums = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { sums: sums.collect() }
    }

    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let at = random.fraction() * self.sums.last().copied().unwrap_or_default();
        self.sums.partition_point(|sum| *sum <= at).min(self.sums.len().saturating_sub(1))
    }
}

/// A parameter of one client, ready to be drawn.
#[derive(Clone, Debug)]
pub(super) enum Parameter {
    Null,
    Constant(Vec<u8>),
    Integer(Sampler),
    OneOf(Choice, Vec<Vec<u8>>),
    Histogram { bounds: Vec<i64>, scale: u32 },
    Text { least: u32, most: u32 },
    Sequence { next: i64, step: i64 },
    Uuid,
    SameAs { call: usize, parameter: usize, plus: i64 },
    Returned { call: usize, column: usize },
    Array { of: Box<Parameter>, length: u32, element: Vec<u8> },
    Mixture(Choice, Vec<Parameter>),
}

impl Parameter {
    /// Prepares what has passed `check`. Each of `clients` counts numbers of its own.
    pub(super) fn new(draw: &Draw, client: u64, clients: u64) -> Self {
        match draw {
            Draw::Null => Self::Null,
            Draw::Constant { value } => Self::Constant(value.clone().into_bytes()),
            Draw::Integer { low, high, distribution } => {
                Self::Integer(Sampler::new(*distribution, *low, *high))
            }
            Draw::OneOf { values, weights } => {
                let weight = |at: usize| weights.get(at).copied().unwrap_or(1.0);
                let texts = values.iter().map(|value| value.clone().into_bytes()).collect();
                Self::OneOf(Choice::new((0..values.len()).map(weight)), texts)
            }
            Draw::Histogram { bounds, scale } => Self::Histogram { bounds: bounds.clone(), scale: *scale },
            Draw::Text { least, most } => Self::Text { least: *least, most: *most },
            Draw::Sequence { start, part, parts } => Self::Sequence {
                next: start.saturating_add_unsigned(client + clients * u64::from(*part)),
                step: (clients * u64::from(*parts)).cast_signed(),
            },
            Draw::Uuid => Self::Uuid,
            Draw::SameAs { call, parameter, plus } => {
                Self::SameAs { call: *call, parameter: *parameter, plus: *plus }
            }
            Draw::Returned { call, column } => Self::Returned { call: *call, column: *column },
            Draw::Array { of, length } => Self::Array {
                of: Box::new(Self::new(of, client, clients)),
                length: *length,
                element: Vec::new(),
            },
            Draw::Mixture { parts } => Self::Mixture(
                Choice::new(parts.iter().map(|(weight, _)| *weight)),
                parts.iter().map(|(_, part)| Self::new(part, client, clients)).collect(),
            ),
        }
    }

    /// Draws a value and writes it. False: it is NULL. `earlier` gives what was drawn for a call's parameter.
    pub(super) fn draw<'a>(
        &mut self,
        random: &mut Random,
        earlier: &dyn Fn(usize, usize) -> Option<&'a [u8]>,
        out: &mut Vec<u8>,
    ) -> bool {
        match self {
            // What is returned is not known before the transaction begins; the client asks for it.
            Self::Null | Self::Returned { .. } => return false,
            Self::Constant(text) => out.extend_from_slice(text),
            Self::Integer(sampler) => write_integer(sampler.draw(random), out),
            Self::OneOf(choice, texts) => out.extend_from_slice(&texts[choice.draw(random)]),
            Self::Histogram { bounds, scale } => write_decimal(from_histogram(bounds, random), *scale, out),
            Self::Text { least, most } => write_letters(random, (*least, *most), out),
            Self::Sequence { next, step } => {
                write_integer(*next, out);
                *next = next.saturating_add(*step);
            }
            Self::Uuid => write_uuid(random, out),
            Self::SameAs { call, parameter, plus } => {
                let Some(text) = earlier(*call, *parameter) else { return false };
                write_sum(text, *plus, out);
            }
            Self::Array { of, length, element } => {
                out.push(b'{');
                for at in 0..*length {
                    element.clear();
                    let is_value = of.draw(random, earlier, element);
                    write_element(element, (at == 0, is_value), out);
                }
                out.push(b'}');
            }
            Self::Mixture(choice, parts) => {
                return parts[choice.draw(random)].draw(random, earlier, out);
            }
        }
        true
    }
}

fn from_histogram(bounds: &[i64], random: &mut Random) -> i64 {
    let bucket = random.between(0, (bounds.len() - 2).cast_signed() as i64) as usize;
    random.between(bounds[bucket], bounds[bucket + 1])
}
