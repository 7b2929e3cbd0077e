//! The values of rows.

use crate::random::Random;
use crate::workload::data_set::write_integer;

use super::options::MAX_DATA_LENGTH;
use super::{DataLength, Domains};

const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of 6 bits per draw of 64 bits.
const CHARACTERS_PER_DRAW: i64 = 10;

/// Writes the rows of one client.
pub struct RowWriter {
    random: Random,
    domains: Domains,
    data_length: DataLength,
}

impl RowWriter {
    /// Draws from `random`. The options must have been checked.
    pub fn new(random: Random, domains: Domains, data_length: DataLength) -> Self {
        Self { random, domains, data_length }
    }

    /// Appends `('timestamp',cash register,customer,product,price,'data')`.
    pub fn write_row(&mut self, timestamp: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"('");
        out.extend_from_slice(timestamp);
        out.extend_from_slice(b"',");
        let Domains { cash_registers, customers, products, prices } = self.domains;
        for values in [cash_registers, customers, products] {
            write_integer(self.below(values), out);
            out.push(b',');
        }
        write_integer(self.below(prices), out);
        // Two decimals make it a numeric, which the server casts to the column's integer.
        out.extend_from_slice(b".00,'");
        self.write_data(out);
        out.extend_from_slice(b"')");
    }

    /// The reference cuts the random part from 4 MiB generated at its start. New draws are equally random and
    /// avoid cache misses.
    fn write_data(&mut self, out: &mut Vec<u8>) {
        let DataLength { min, max } = self.data_length;
        let length = self.random.between(min, max);
        let mut left = random_length(length);
        out.extend_from_slice(&FIXED[..(length - left) as usize]);
        while left > 0 {
            let bits = self.random.bits();
            let characters = (0..left.min(CHARACTERS_PER_DRAW)).map(|at| bits >> (6 * at) & 63);
            out.extend(characters.map(|number| CHARACTERS[number as usize]));
            left -= CHARACTERS_PER_DRAW;
        }
    }

    fn below(&mut self, values: i64) -> i64 {
        self.random.between(0, values - 1)
    }
}

const FIXED: [u8; MAX_DATA_LENGTH as usize] = [b'a'; MAX_DATA_LENGTH as usize];

/// Number of random characters in a value: 3/4 of half its length. The reference aims at half of it in random
/// *bytes*, and multiplies by 3/4 for the overhead of base64.
fn random_length(length: i64) -> i64 {
    length * 3 / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMESTAMP: &[u8] = b"2026-01-01 00:00:00";

    fn writer(seed: u64) -> RowWriter {
        let random = Random::stream(seed, "test", 0);
        RowWriter::new(random, Domains::default(), DataLength::default())
    }

    fn row(writer: &mut RowWriter) -> String {
        let mut text = Vec::new();
        writer.write_row(TIMESTAMP, &mut text);
        String::from_utf8(text).unwrap()
    }

    /// The values of a row between its parentheses.
    fn values(row: &str) -> Vec<String> {
        let inner = row.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap();
        inner.split(',').map(str::to_owned).collect()
    }

    fn data_of(row: &str) -> String {
        values(row)[5].trim_matches('\'').to_owned()
    }

    /// Chi-square of uniform draws over `bins` equal bins is within five standard deviations of its mean.
    fn assert_uniform(draws: &[u64], values: u64, bins: u64) {
        let mut counts = vec![0.0; bins as usize];
        for draw in draws {
            assert!(*draw < values, "{draw} is not below {values}");
            counts[(draw * bins / values) as usize] += 1.0;
        }
        let expected = draws.len() as f64 / bins as f64;
        let chi_square: f64 = counts.iter().map(|count: &f64| (count - expected).powi(2) / expected).sum();
        let freedom = (bins - 1) as f64;
        let distance = (chi_square - freedom).abs() / (2.0 * freedom).sqrt();
        assert!(distance < 5.0, "chi-square {chi_square} of {bins} bins of {values} values");
    }

    #[test]
    fn a_row_has_six_values_in_the_order_of_the_insert() {
        let values = values(&row(&mut writer(1)));
        assert_eq!(values.len(), 6);
        assert_eq!(values[0], "'2026-01-01 00:00:00'");
        assert!(values[4].ends_with(".00"), "{}", values[4]);
        assert!(values[5].starts_with("'a") && values[5].ends_with('\''), "{}", values[5]);
    }

    #[test]
    fn integers_are_uniform_over_their_published_domains() {
        let mut writer = writer(7);
        let mut columns = vec![Vec::new(); 4];
        for _ in 0..50_000 {
            let values = values(&row(&mut writer));
            for (column, value) in columns.iter_mut().zip(&values[1..5]) {
                column.push(value.trim_end_matches(".00").parse().unwrap());
            }
        }
        for (column, values) in columns.iter().zip([1000, 100_000, 10_000, 500]) {
            assert_uniform(column, values, 500);
            assert!(column.iter().any(|value| *value < values / 100), "low values");
            assert!(column.iter().any(|value| *value >= values - values / 100), "high values");
        }
    }

    #[test]
    fn data_is_filled_with_a_and_ends_with_random_characters() {
        // int(L * 0.75 * 0.5) for L from 10 to 20, from Python.
        let random_lengths = [3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7];
        let mut writer = writer(3);
        let mut seen = [0; 11];
        for _ in 0..20_000 {
            let data = data_of(&row(&mut writer));
            let at = data.len() - 10;
            seen[at] += 1;
            let (fixed, random) = data.split_at(data.len() - random_lengths[at]);
            assert!(fixed.bytes().all(|byte| byte == b'a'), "{data}");
            assert!(random.bytes().all(|byte| CHARACTERS.contains(&byte)), "{data}");
        }
        // 1818 are expected of each length; five standard deviations are 204.
        assert!(seen.iter().all(|count| (1614..=2022).contains(count)), "{seen:?}");
    }

    #[test]
    fn random_characters_are_uniform_over_base64_wherever_they_stand() {
        let data_length = DataLength { min: 4000, max: 4000 };
        let mut writer = RowWriter::new(Random::stream(5, "test", 0), Domains::default(), data_length);
        let mut by_place = vec![[0.0f64; 256]; CHARACTERS_PER_DRAW as usize];
        for _ in 0..200 {
            for (at, byte) in data_of(&row(&mut writer)).bytes().skip(2500).enumerate() {
                by_place[at % CHARACTERS_PER_DRAW as usize][usize::from(byte)] += 1.0;
            }
        }
        for counts in by_place {
            let expected = 200.0 * 150.0 / 64.0;
            let distances = CHARACTERS.map(|byte| (counts[usize::from(byte)] - expected).powi(2) / expected);
            let chi_square: f64 = distances.iter().sum();
            assert!((chi_square - 63.0).abs() < 5.0 * 126.0f64.sqrt(), "{chi_square}");
            assert_eq!(counts.iter().filter(|count| **count > 0.0).count(), 64);
        }
    }

    #[test]
    fn the_longest_data_fits_and_the_shortest_is_not_empty() {
        for (length, random) in [(1, 0), (2, 0), (3, 1), (4000, 1500)] {
            let data_length = DataLength { min: length, max: length };
            let random_stream = Random::stream(1, "test", 0);
            let mut writer = RowWriter::new(random_stream, Domains::default(), data_length);
            let data = data_of(&row(&mut writer));
            assert_eq!(i64::try_from(data.len()).unwrap(), length);
            assert_eq!(random_length(length), random);
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_rows_and_another_seed_others() {
        let (mut one, mut same, mut other) = (writer(1), writer(1), writer(2));
        let rows = |writer: &mut RowWriter| (0..100).map(|_| row(writer)).collect::<Vec<_>>();
        let expected = rows(&mut one);
        assert_eq!(rows(&mut same), expected);
        assert_ne!(rows(&mut other), expected);
    }
}
