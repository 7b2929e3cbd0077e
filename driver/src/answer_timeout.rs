//! Detects unresponsive servers by checking a thread's sessions periodically.

use crate::clock::Nanos;
use crate::error::Error;
use crate::load::Load;
use crate::session::Session;

/// A missing answer is detected at most 1/4 of the limit late.
const CHECKS_PER_LIMIT: Nanos = 4;

/// The limit on the time to answer, and the time of the next check.
pub struct AnswerTimeout {
    limit: Nanos,
    next_check: Nanos,
}

impl AnswerTimeout {
    /// Allows each answer `limit`.
    pub fn new(limit: Nanos, now: Nanos) -> Self {
        Self { limit, next_check: now + limit / CHECKS_PER_LIMIT }
    }

    /// The time of the next check.
    pub fn next_check(&self) -> Nanos {
        self.next_check
    }

    /// Fails if a session has waited longer than the limit.
    pub fn check(&mut self, now: Nanos, sessions: &[Session], load: &Load) -> Result<(), Error> {
        if now < self.next_check {
            return Ok(());
        }
        self.next_check = now + self.limit / CHECKS_PER_LIMIT;
        let oldest = now.saturating_sub(self.limit);
        let Some(silent) = sessions.iter().find(|session| session.is_unanswered_since(oldest)) else {
            return Ok(());
        };
        let (arm, role) = (&load.arms[silent.arm], &load.roles[silent.role]);
        let limit_s = self.limit as f64 / 1e9;
        let place = arm.info.place();
        Err(Error::new(format!("{} ({place}) did not answer within {limit_s:.0} s", arm.name))
            .detail(format!("client {} of role \"{}\" is waiting", silent.client_index, role.name))
            .hint("check pg_stat_activity for a lock wait or a hung backend, or raise the answer limit"))
    }
}
