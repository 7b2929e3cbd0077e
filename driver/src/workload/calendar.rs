//! Dates of the Gregorian calendar as numbers of days, and ends of ranges of numbers and times.

use super::data_set::write_integer;

/// Seconds of a day without leap seconds.
pub(super) const SECONDS_PER_DAY: i64 = 86_400;
const MICROSECONDS: f64 = 1e6;
const MICROSECONDS_PER_DAY: i64 = SECONDS_PER_DAY * 1_000_000;

/// The Gregorian date of a day number since 1970-01-01. Source: Howard Hinnant, "chrono-compatible low-level
/// date algorithms". Years begin in March, so that the leap day is the last of its year.
pub(super) fn civil_date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468; // since 0000-03-01
    let era = shifted.div_euclid(146_097); // 400 years
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day number of a Gregorian date. Source: as `civil_date`.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Appends a non-negative number with at least `digits` digits.
pub(super) fn write_padded(number: i64, digits: u32, out: &mut Vec<u8>) {
    let missing = (1..digits).filter(|place| number < 10_i64.pow(*place)).count();
    out.resize(out.len() + missing, b'0');
    write_integer(number, out);
}

/// Appends a number plus a width, or a date or timestamp (as PostgreSQL writes it in ISO style) plus a number
/// of seconds; dates get whole days. Other texts, such as `infinity`, are appended as they are.
pub(super) fn write_end(text: &[u8], width: f64, out: &mut Vec<u8>) {
    let start = out.len();
    let is_known = std::str::from_utf8(text)
        .is_ok_and(|known| write_sum(known, width, out) || write_moment(known, width, out).is_some());
    if !is_known {
        out.truncate(start);
        out.extend_from_slice(text);
    }
}

fn write_sum(text: &str, width: f64, out: &mut Vec<u8>) -> bool {
    if let (Ok(number), true) = (text.parse::<i64>(), width.fract() == 0.0) {
        write_integer(number.saturating_add(width as i64), out);
        return true;
    }
    let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) else { return false };
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, after)| after.len());
    let scale = decimals(text).max(decimals(&width.to_string()));
    out.extend_from_slice(format!("{:.scale$}", number + width).as_bytes());
    true
}

/// Appends a date or timestamp plus seconds, with the zone that it has; returns None for other texts.
fn write_moment(text: &str, width: f64, out: &mut Vec<u8>) -> Option<()> {
    let (date, time) = text.split_once(' ').map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let first = day_number(year, month, day);
    let Some(time) = time else {
        write_date(first + (width / SECONDS_PER_DAY as f64).round() as i64, out);
        return Some(());
    };
    let end = time.find(|one: char| !matches!(one, '0'..='9' | ':' | '.')).unwrap_or(time.len());
    let (clock, zone) = time.split_at(end);
    if zone.starts_with(' ') {
        return None; // "BC"
    }
    let mut units = clock.splitn(3, ':');
    let (hours, minutes) = (units.next()?.parse::<i64>().ok()?, units.next()?.parse::<i64>().ok()?);
    let seconds: f64 = units.next()?.parse().ok()?;
    let added = ((seconds + width) * MICROSECONDS).round() as i64;
    let moment = added + (hours * 3600 + minutes * 60) * 1_000_000;
    write_date(first + moment.div_euclid(MICROSECONDS_PER_DAY), out);
    let rest = moment.rem_euclid(MICROSECONDS_PER_DAY);
    let second = rest / 1_000_000;
    for (separator, number) in [(b' ', second / 3600), (b':', second / 60 % 60), (b':', second % 60)] {
        out.push(separator);
        write_padded(number, 2, out);
    }
    out.push(b'.');
    write_padded(rest % 1_000_000, 6, out);
    out.extend_from_slice(zone.as_bytes());
    Some(())
}

fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil_date(days);
    write_padded(year, 4, out);
    for number in [month, day] {
        out.push(b'-');
        write_padded(number, 2, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_number_or_a_moment_further() {
        // From Python's decimal and datetime.
        for (text, width, expected) in [
            ("5", 9.0, "14"),
            ("-5", -9.0, "-14"),
            ("5", 0.25, "5.25"),
            ("12.50", 3.5, "16.00"),
            ("12.5", -0.125, "12.375"),
            ("9223372036854775807", 1.0, "9223372036854775807"),
            ("2024-02-28", 86_400.0, "2024-02-29"),
            ("2026-01-01", -604_800.0, "2025-12-25"),
            ("1970-01-01", 0.0, "1970-01-01"),
            ("2026-12-31 23:59:59.5", 0.75, "2027-01-01 00:00:00.250000"),
            ("2026-03-01 00:00:00+01", -1.0, "2026-02-28 23:59:59.000000+01"),
            ("2026-06-30 12:00:00+05:30", 2_592_000.0, "2026-07-30 12:00:00.000000+05:30"),
            ("infinity", 5.0, "infinity"),
            ("0044-03-15 BC", 5.0, "0044-03-15 BC"),
            ("0044-03-15 00:00:00 BC", 5.0, "0044-03-15 00:00:00 BC"),
            ("a-b-c", 5.0, "a-b-c"),
            ("", 5.0, ""),
        ] {
            let mut out = b"before ".to_vec();
            write_end(text.as_bytes(), width, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("before {expected}"));
        }
    }

    #[test]
    fn day_numbers_are_those_of_dates() {
        for days in (-800_000..3_000_000).step_by(97) {
            let (year, month, day) = civil_date(days);
            assert_eq!(day_number(year, month, day), days);
        }
    }
}
