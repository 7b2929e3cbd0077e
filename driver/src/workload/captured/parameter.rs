//! Draws parameters.

use std::sync::Arc;

use super::draw::Draw;
use super::options::Sample;
use super::values::{write_decimal, write_element, write_letters, write_uuid};
use crate::random::{PgbenchSampler, Random, Sampler};
use crate::workload::calendar::write_end;
use crate::workload::data_set::{write_integer, write_sum};

/// A random choice of an index, with probabilities proportional to weights.
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

/// The texts of a sample, which all clients share.
#[derive(Debug)]
pub(super) struct Texts {
    choice: Choice,
    values: Vec<String>,
}

impl Texts {
    pub(super) fn new(sample: &Sample) -> Self {
        let weight = |at: usize| sample.weights.get(at).copied().unwrap_or(1.0);
        Self { choice: Choice::new((0..sample.values.len()).map(weight)), values: sample.values.clone() }
    }
}

/// The generator of a parameter, for one client.
#[derive(Clone, Debug)]
pub(super) enum Parameter {
    Null,
    Constant(Vec<u8>),
    Integer(Sampler),
    PgbenchInteger(PgbenchSampler),
    OneOf(Arc<Texts>),
    Histogram { bounds: Vec<i64>, scale: u32 },
    Text { least: u32, most: u32 },
    Sequence { next: i64, step: i64 },
    Uuid,
    SameAs { call: usize, parameter: usize, plus: i64 },
    RangeEnd { call: usize, parameter: usize, widths: Vec<f64> },
    Returned { call: usize, column: usize, plus: i64 },
    Ordinal,
    Array { of: Box<Parameter>, length: u32, element: Vec<u8> },
    Mixture(Choice, Vec<Parameter>),
}

impl Parameter {
    /// Creates a generator. `draw` must have passed `check`. Sequences of the `clients` are disjoint.
    pub(super) fn new(draw: &Draw, samples: &[Arc<Texts>], client: u64, clients: u64) -> Self {
        match draw {
            Draw::Null => Self::Null,
            Draw::Constant { value } => Self::Constant(value.clone().into_bytes()),
            Draw::Integer { low, high, distribution } => {
                Self::Integer(Sampler::new(*distribution, *low, *high))
            }
            Draw::PgbenchInteger { low, high, distribution, parameter } => {
                Self::PgbenchInteger(PgbenchSampler::new(*distribution, *parameter, *low, *high))
            }
            Draw::OneOf { sample } => Self::OneOf(Arc::clone(&samples[*sample])),
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
            Draw::RangeEnd { call, parameter, widths } => {
                Self::RangeEnd { call: *call, parameter: *parameter, widths: widths.clone() }
            }
            Draw::Returned { call, column, plus } => {
                Self::Returned { call: *call, column: *column, plus: *plus }
            }
            Draw::Ordinal => Self::Ordinal,
            Draw::Array { of, length } => Self::Array {
                of: Box::new(Self::new(of, samples, client, clients)),
                length: *length,
                element: Vec::new(),
            },
            Draw::Mixture { parts } => Self::Mixture(
                Choice::new(parts.iter().map(|(weight, _)| *weight)),
                parts.iter().map(|(_, part)| Self::new(part, samples, client, clients)).collect(),
            ),
        }
    }

    /// Draws a value and writes it; returns false for NULL. `earlier` returns the drawn parameter of a call.
    pub(super) fn draw<'a>(
        &mut self,
        random: &mut Random,
        earlier: &dyn Fn(usize, usize) -> Option<&'a [u8]>,
        out: &mut Vec<u8>,
    ) -> bool {
        match self {
            // A returned value is unknown before the transaction begins; the client requests it, and counts
            // the calls of a statement.
            Self::Null | Self::Returned { .. } | Self::Ordinal => return false,
            Self::Constant(text) => out.extend_from_slice(text),
            Self::Integer(sampler) => write_integer(sampler.draw(random), out),
            Self::PgbenchInteger(sampler) => write_integer(sampler.draw(random), out),
            Self::OneOf(texts) => out.extend_from_slice(texts.values[texts.choice.draw(random)].as_bytes()),
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
            Self::RangeEnd { call, parameter, widths } => {
                let Some(text) = earlier(*call, *parameter) else { return false };
                let at = random.between(0, (widths.len() - 1).cast_signed() as i64) as usize;
                write_end(text, widths[at], out);
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
