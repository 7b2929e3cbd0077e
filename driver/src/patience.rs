//! Notices servers that do not answer any more: looks at the sessions of a thread now and then.

use crate::clock::Nanos;
use crate::error::Error;
use crate::load::Load;
use crate::session::Session;

/// A silence is noticed when it is at most this part of the limit longer than the limit.
const LOOKS_PER_LIMIT: Nanos = 4;

/// How long answers are waited for, and when that is looked at next.
pub struct Patience {
    limit: Nanos,
    next_look: Nanos,
}

impl Patience {
    /// Waits for each answer as long as `limit`.
    pub fn new(limit: Nanos, now: Nanos) -> Self {
        Self { limit, next_look: now + limit / LOOKS_PER_LIMIT }
    }

    /// When to look next.
    pub fn next_look(&self) -> Nanos {
        self.next_look
    }

    /// Fails if a session has waited for longer than the limit.
    pub fn look(&mut self, now: Nanos, sessions: &[Session], load: &Load) -> Result<(), Error> {
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + self.limit / LOOKS_PER_LIMIT;
        let oldest = now.saturating_sub(self.limit);
        let Some(silent) = sessions.iter().find(|session| session.is_unanswered_since(oldest)) else {
            return Ok(());
        };
        let (arm, role) = (&load.arms[silent.arm], &load.roles[silent.role]);
        let limit_s = self.limit as f64 / 1e9;
        let place = arm.info.place();
        Err(Error::new(format!("{} ({place}) has not answered for {limit_s:.0} s", arm.name))
            .detail(format!("client {} of role \"{}\" waits", silent.client_index, role.name))
            .hint("does it hang, or does a lock hold the transaction (pg_stat_activity)? The answer limit allows more"))
    }
}
