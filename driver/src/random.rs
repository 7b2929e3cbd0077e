//! Seeded random numbers: one independent, reproducible stream per client and per row.
//!
//! Workloads have no other source of randomness, so that compared servers see the same parameters. Not for
//! secrets.

mod distribution;
mod pgbench;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub use distribution::{Distribution, Sampler};
pub use pgbench::{PgbenchDistribution, PgbenchSampler};

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream for a seed, a purpose (the name of a role or table) and a number within it (of a client or
    /// row).
    ///
    /// The three are hashed to 64 bits: among 10,000 streams, the probability of two equal ones is 3e-12.
    pub fn stream(seed: u64, purpose: &str, number: u64) -> Self {
        let key = scramble(scramble(scramble(seed) ^ hash(purpose)) ^ number);
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1), with 53 random bits.
    pub fn fraction(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        (self.bits() >> 11) as f64 * UNIT
    }

    /// A uniformly distributed integer from `low` to `high`, inclusive. Requires `low <= high`.
    ///
    /// The bias of the multiplication is at most 1 part in 2^64 / (high - low): not observable for the range
    /// of any table.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high, "nothing lies between {low} and {high}");
        let span = u128::from(high.abs_diff(low)) + 1;
        low.wrapping_add_unsigned(((u128::from(self.bits()) * span) >> 64) as u64)
    }

    /// Appends `groups` groups of eleven random digits, separated by dashes, as in sysbench's text columns.
    pub fn write_digit_groups(&mut self, groups: usize, out: &mut Vec<u8>) {
        for group in 0..groups {
            if group > 0 {
                out.push(b'-');
            }
            self.write_digit_group(out);
        }
    }

    /// The digits are the decimal expansion of one random fraction; the last has a bias of 10^11 / 2^64.
    fn write_digit_group(&mut self, out: &mut Vec<u8>) {
        let mut digits = [0; 11];
        let mut fraction = self.bits();
        for pair in digits.chunks_exact_mut(2) {
            let product = u128::from(fraction) * 100;
            pair.copy_from_slice(&DIGIT_PAIRS[(product >> 64) as usize]);
            fraction = product as u64;
        }
        digits[10] = b'0' + ((u128::from(fraction) * 10) >> 64) as u8;
        out.extend_from_slice(&digits);
    }
}

/// "00" to "99".
const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The output function of `SplitMix64` (Steele, Lea, Flood 2014): every input bit affects half of the output
/// bits.
fn scramble(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_bits(mut random: Random) -> [u64; 3] {
        [random.bits(), random.bits(), random.bits()]
    }

    #[test]
    fn a_stream_is_the_same_in_every_version_of_the_driver() {
        // Computed by a Python program from the definitions of FNV-1a, SplitMix64 and xoshiro256++.
        assert_eq!(
            first_bits(Random::stream(1, "main", 0)),
            [0x57ED_0B10_D401_04F9, 0x3B61_7F99_0723_BBA6, 0x8A0E_3297_5A26_706A]
        );
        assert_eq!(
            first_bits(Random::stream(42, "insert", 7)),
            [0xE105_FF3D_571C_1E91, 0xD2D7_53C4_55FF_5CC0, 0x6B61_C796_88B1_1C3C]
        );
    }

    #[test]
    fn streams_of_other_seeds_purposes_and_numbers_differ() {
        let stream = first_bits(Random::stream(1, "main", 0));
        assert_ne!(stream, first_bits(Random::stream(2, "main", 0)));
        assert_ne!(stream, first_bits(Random::stream(1, "other", 0)));
        assert_ne!(stream, first_bits(Random::stream(1, "main", 1)));
        assert_ne!(first_bits(Random::stream(1, "main", 2)), first_bits(Random::stream(2, "main", 1)));
    }

    #[test]
    fn between_reaches_both_ends_and_nothing_outside() {
        let mut random = Random::stream(1, "test", 0);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[usize::try_from(random.between(-2, 2) + 2).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (140..260).contains(count)), "{seen:?}"); // 200 each, 4.7 sigma
    }

    #[test]
    fn between_spans_all_integers() {
        let mut random = Random::stream(1, "test", 0);
        let values: Vec<i64> = (0..100).map(|_| random.between(i64::MIN, i64::MAX)).collect();
        assert!(values.iter().any(|value| *value < i64::MIN / 2));
        assert!(values.iter().any(|value| *value > i64::MAX / 2));
        assert_eq!(random.between(7, 7), 7);
    }

    #[test]
    fn fractions_are_at_least_zero_and_below_one() {
        let mut random = Random::stream(1, "test", 0);
        let fractions: Vec<f64> = (0..10_000).map(|_| random.fraction()).collect();
        assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = fractions.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.015, "{mean}"); // 5 sigma: 5 * sqrt(1/12) / 100
    }

    #[test]
    fn digit_groups_look_like_the_template_of_sysbench() {
        let mut text = Vec::new();
        Random::stream(1, "test", 0).write_digit_groups(10, &mut text);
        assert_eq!(text.len(), 119);
        for (at, byte) in text.iter().enumerate() {
            assert!(if at % 12 == 11 { *byte == b'-' } else { byte.is_ascii_digit() }, "{at}: {byte}");
        }
    }

    #[test]
    fn every_digit_is_equally_likely_at_every_place_of_a_group() {
        let mut random = Random::stream(1, "test", 0);
        let mut text = Vec::new();
        random.write_digit_groups(10_000, &mut text);
        for place in 0..11 {
            let mut counts = [0; 10];
            for group in text.chunks(12) {
                counts[usize::from(group[place] - b'0')] += 1;
            }
            assert!(counts.iter().all(|count| (850..=1150).contains(count)), "{place}: {counts:?}"); // 5 sigma
        }
    }
}
