//! Specifications of how to draw parameters, and their checks.

use serde::Deserialize;

use crate::random::{Distribution, PgbenchDistribution};

/// In a wider range, not every number can be drawn.
const MAX_DISTANCE: u64 = 1 << 53;
/// Maximum number of array elements. Arbitrary.
const MAX_LENGTH: u32 = 10_000;
/// Maximum number of columns in a result row.
const MAX_COLUMNS: usize = 1664;
/// Maximum number of letters in a text. Arbitrary.
const MAX_TEXT: u32 = 1 << 14;
/// Maximum number of decimals. Arbitrary: the most that a 64-bit integer can hold.
const MAX_SCALE: u32 = 18;

/// How to draw a parameter. Its unit is that of the parameter's type.
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
    /// An integer from an inclusive range.
    Integer {
        /// The lowest.
        low: i64,
        /// The highest.
        high: i64,
        /// The distribution.
        #[serde(default)]
        distribution: Distribution,
    },
    /// An integer between two others, both included, by a distribution of pgbench.
    PgbenchInteger {
        /// The lowest.
        low: i64,
        /// The highest.
        high: i64,
        /// Which are more likely than others.
        distribution: PgbenchDistribution,
        /// How much more.
        parameter: f64,
    },
    /// One of several texts.
    OneOf {
        /// Index of the sample that has the texts.
        sample: usize,
    },
    /// A number from a histogram with equally frequent buckets.
    Histogram {
        /// Bounds of the buckets, in units of the last digit.
        bounds: Vec<i64>,
        /// Number of decimals.
        #[serde(default)]
        scale: u32,
    },
    /// A text of random letters.
    Text {
        /// The minimum number of letters.
        least: u32,
        /// The maximum.
        most: u32,
    },
    /// Unique numbers: the sequences of all clients, and of all `parts` that draw from the same column, are
    /// disjoint.
    Sequence {
        /// The first number.
        start: i64,
        /// Index of this part.
        #[serde(default)]
        part: u32,
        /// Number of parts.
        #[serde(default = "one")]
        parts: u32,
    },
    /// A random UUID.
    Uuid,
    /// The value of an earlier parameter of the same transaction, optionally plus a number.
    SameAs {
        /// Index of the call within the transaction; its last execution counts.
        call: usize,
        /// Index of the parameter within the call.
        parameter: usize,
        /// Added to an integer, unless 0.
        #[serde(default)]
        plus: i64,
    },
    /// The other end of a range that begins or ends with an earlier parameter of the same transaction.
    RangeEnd {
        /// Index of the call within the transaction; its last execution counts.
        call: usize,
        /// Index of the parameter within the call.
        parameter: usize,
        /// Equally likely distances, in seconds for dates and timestamps; negative for the lower end.
        widths: Vec<f64>,
    },
    /// A column of the first row returned by an earlier call of the same transaction. NULL if there is no
    /// row, and in a pipeline, where no call has returned yet.
    Returned {
        /// Index of the call within the transaction; its last execution counts.
        call: usize,
        /// Index of the column.
        column: usize,
        /// Added to an integer, unless 0.
        #[serde(default)]
        plus: i64,
    },
    /// How often the statement has been executed in the transaction, this call included.
    Ordinal,
    /// An array of independently drawn values.
    Array {
        /// How to draw each element.
        of: Box<Draw>,
        /// Number of elements.
        length: u32,
    },
    /// One of several ways to draw.
    Mixture {
        /// The ways, each with a relative weight.
        parts: Vec<(f64, Draw)>,
    },
}

impl Draw {
    /// Checks the specification; the error is the reason. `samples` is their number, `earlier` holds the
    /// parameter counts of the calls up to this one, `at` the indices of this call and parameter.
    pub(super) fn check(&self, samples: usize, earlier: &[usize], at: (usize, usize)) -> Result<(), String> {
        match self {
            Self::Integer { low, high, .. } => {
                require(low <= high && low.abs_diff(*high) < MAX_DISTANCE, || {
                    format!("cannot draw an integer from {low} to {high}")
                })
            }
            Self::PgbenchInteger { low, high, distribution, parameter } => {
                require(low <= high && low.abs_diff(*high) < MAX_DISTANCE, || {
                    format!("no integer can be drawn from {low} to {high}")
                })?;
                require(distribution.takes(*parameter), || {
                    format!("the distribution takes no parameter {parameter}")
                })
            }
            Self::OneOf { sample } => {
                require(*sample < samples, || format!("sample {sample} of {samples} does not exist"))
            }
            Self::Histogram { bounds, scale } => check_histogram(bounds, *scale),
            Self::Text { least, most } => require(least <= most && *most <= MAX_TEXT, || {
                format!("a text cannot have {least} to {most} letters")
            }),
            Self::SameAs { call, parameter, .. } => check_earlier((*call, *parameter), earlier, at),
            Self::RangeEnd { call, parameter, widths } => {
                require(!widths.is_empty() && widths.iter().all(|width| width.is_finite()), || {
                    "the widths of a range are not numbers".into()
                })?;
                check_earlier((*call, *parameter), earlier, at)
            }
            Self::Returned { call, column, .. } => require(*call < at.0 && *column < MAX_COLUMNS, || {
                format!("column {column} of call {call} is not an earlier result")
            }),
            Self::Array { of, length } => {
                require(*length <= MAX_LENGTH, || format!("{length} elements are too many for an array"))?;
                check_part(of, samples, earlier, at)
            }
            Self::Mixture { parts } => check_mixture(parts, samples, earlier, at),
            Self::Sequence { part, parts, .. } => {
                require(part < parts, || format!("part {part} of {parts} does not exist"))
            }
            Self::Null | Self::Constant { .. } | Self::Uuid | Self::Ordinal => Ok(()),
        }
    }
}

fn one() -> u32 {
    1
}

fn require(is_right: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(why()) }
}

fn check_earlier(place: (usize, usize), earlier: &[usize], at: (usize, usize)) -> Result<(), String> {
    let (call, parameter) = place;
    let is_there = earlier.get(call).is_some_and(|count| parameter < *count);
    require(is_there && place < at, || {
        format!("parameter {parameter} of call {call} is not an earlier parameter")
    })
}

pub(super) fn check_values(values: &[String], weights: &[f64]) -> Result<(), String> {
    require(!values.is_empty(), || "the list of values is empty".into())?;
    require(weights.is_empty() || weights.len() == values.len(), || {
        format!("{} values have {} weights", values.len(), weights.len())
    })?;
    check_weights(weights)
}

fn check_histogram(bounds: &[i64], scale: u32) -> Result<(), String> {
    require(bounds.len() >= 2, || "a histogram needs at least two bounds".into())?;
    require(bounds.is_sorted(), || "the bounds of a histogram are not in ascending order".into())?;
    require(scale <= MAX_SCALE, || format!("{scale} decimals are too many"))
}

fn check_mixture(
    parts: &[(f64, Draw)],
    samples: usize,
    earlier: &[usize],
    at: (usize, usize),
) -> Result<(), String> {
    require(!parts.is_empty(), || "a mixture has no parts".into())?;
    check_weights(&parts.iter().map(|(weight, _)| *weight).collect::<Vec<_>>())?;
    parts.iter().try_for_each(|(_, part)| check_part(part, samples, earlier, at))
}

/// Refuses nested mixtures and arrays, ordinals, and returned values, which are unknown before the
/// transaction begins.
fn check_part(part: &Draw, samples: usize, earlier: &[usize], at: (usize, usize)) -> Result<(), String> {
    let is_simple =
        !matches!(part, Draw::Mixture { .. } | Draw::Array { .. } | Draw::Returned { .. } | Draw::Ordinal);
    require(is_simple, || {
        "a mixture or array contains a mixture, an array, an ordinal or a returned value".into()
    })?;
    part.check(samples, earlier, at)
}

fn check_weights(weights: &[f64]) -> Result<(), String> {
    let are_weights = weights.iter().all(|weight| *weight >= 0.0 && weight.is_finite());
    require(are_weights && (weights.is_empty() || weights.iter().sum::<f64>() > 0.0), || {
        "weights must be non-negative numbers, not all of them 0".into()
    })
}
