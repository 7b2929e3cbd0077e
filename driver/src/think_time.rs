//! Pauses of clients between transactions. Pure: draws depend only on the seed, the role and the client's
//! index, so that compared servers see the same pauses.

use crate::clock::Nanos;
use crate::random::Random;

/// The pauses of all clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThinkTime {
    /// No pause.
    None,
    /// The same pause after each transaction.
    Always(Nanos),
    /// One of these pauses, all equally likely, after each transaction and before the first one.
    OneOf(Vec<Nanos>),
}

impl ThinkTime {
    /// The pause after a transaction, if any.
    pub fn after(&self, random: &mut Random) -> Option<Nanos> {
        match self {
            Self::None => None,
            Self::Always(time) => Some(*time),
            Self::OneOf(times) => Some(times[(random.fraction() * times.len() as f64) as usize]),
        }
    }

    /// The rest of the pause that a client is in at the start of the run.
    ///
    /// It is the rest of a pause after a random point on all pauses laid end to end. Clients that all started
    /// with a full pause, or with none, would arrive in waves.
    pub fn before_the_first(&self, random: &mut Random) -> Nanos {
        let Self::OneOf(times) = self else { return 0 };
        let mut point = random.fraction() * times.iter().map(|time| *time as f64).sum::<f64>();
        for time in times {
            let left = *time as f64 - point;
            if left > 0.0 {
                return left as Nanos;
            }
            point = -left;
        }
        0
    }

    /// The random stream of a client's pauses.
    pub fn stream(seed: u64, role: &str, client: usize) -> Random {
        Random::stream(seed, &format!("think times of {role}"), client as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(think_time: &ThinkTime, draws: usize, client: usize) -> Vec<Nanos> {
        let mut random = ThinkTime::stream(1, "main", client);
        (0..draws).map(|_| think_time.after(&mut random).unwrap()).collect()
    }

    #[test]
    fn without_a_think_time_nothing_is_drawn_and_no_client_pauses() {
        let mut random = ThinkTime::stream(1, "main", 0);
        assert_eq!(ThinkTime::None.after(&mut random), None);
        assert_eq!(ThinkTime::None.before_the_first(&mut random), 0);
        assert_eq!(ThinkTime::Always(7).after(&mut random), Some(7));
        assert_eq!(ThinkTime::Always(7).before_the_first(&mut random), 0);
        assert_eq!(random.bits(), ThinkTime::stream(1, "main", 0).bits());
    }

    #[test]
    fn each_time_is_as_likely_as_the_others() {
        let found = first(&ThinkTime::OneOf(vec![10, 20, 30, 1000]), 10_000, 0);
        for time in [10, 20, 30, 1000] {
            let count = found.iter().filter(|one| **one == time).count();
            assert!((2300..2700).contains(&count), "{time}: {count}"); // 2500 each, 4.6 sigma
        }
    }

    #[test]
    fn a_client_pauses_alike_in_every_run_and_otherwise_than_the_next_client() {
        let times = ThinkTime::OneOf((1..=20).collect());
        assert_eq!(first(&times, 50, 3), first(&times, 50, 3));
        assert_ne!(first(&times, 50, 3), first(&times, 50, 4));
    }

    #[test]
    fn clients_are_found_in_long_pauses_as_often_as_these_take_of_the_time() {
        // With pauses of 100 and 900, nine tenths of the time are in long ones. The mean rest of a pause is
        // 0.1 * 50 + 0.9 * 450 = 410, its standard deviation about 269.
        let times = ThinkTime::OneOf(vec![100, 900]);
        let left: Vec<Nanos> = (0..10_000)
            .map(|client| times.before_the_first(&mut ThinkTime::stream(1, "main", client)))
            .collect();
        let mean = left.iter().sum::<Nanos>() as f64 / left.len() as f64;
        assert!((mean - 410.0).abs() < 13.0, "{mean}"); // 5 sigma
        assert!(left.iter().all(|left| *left <= 900));
        assert!(left.iter().any(|left| *left < 10) && left.iter().any(|left| *left > 890));
    }

    #[test]
    fn times_that_are_all_zero_are_no_pause() {
        let times = ThinkTime::OneOf(vec![0, 0]);
        assert_eq!(times.before_the_first(&mut ThinkTime::stream(1, "main", 0)), 0);
        assert_eq!(first(&times, 2, 0), [0, 0]);
    }
}
