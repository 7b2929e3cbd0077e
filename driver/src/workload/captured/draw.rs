//! Where parameters come from, as a workload says it, and what cannot be drawn so.

use serde::Deserialize;

use crate::random::Distribution;

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
