//! A phase of a run: what was counted since it began, and what the driver itself has used.

use crate::clock::Nanos;
use crate::coordinator::Coordinator;
use crate::processor::{own_time, peak_memory_bytes};
use crate::record::Counts;
use crate::results::{Audit, Phase, arm_result, seconds};

/// A phase that has not ended.
pub struct PhaseSoFar {
    name: String,
    /// When it began, on the driver's clock.
    pub began: Nanos,
    own_cpu: Nanos,
    thread_cpu: Vec<Nanos>,
    counts: Vec<Vec<Counts>>,
    /// For how long each arm has had its turn.
    pub running: Vec<Nanos>,
}

impl PhaseSoFar {
    /// Begins to count under this name.
    pub fn begin(name: &str, coordinator: &mut Coordinator) -> Self {
        // What was counted until now belongs to the phase before, which takes it when it ends.
        let load = &coordinator.load;
        let roles =
            || load.roles.iter().map(|role| Counts::new(role.statements.len(), role.clients)).collect();
        let counts = load.arms.iter().map(|_| roles()).collect();
        let running = vec![0; load.arms.len()];
        Self {
            name: name.into(),
            began: coordinator.now(),
            own_cpu: own_time(),
            thread_cpu: coordinator.thread_times(),
            counts,
            running,
        }
    }

    /// Adds what the coordinator was asked for meanwhile.
    pub fn add(&mut self, counts: &[Vec<Counts>]) {
        for (own, other) in self.counts.iter_mut().flatten().zip(counts.iter().flatten()) {
            own.add(other);
        }
    }

    /// Takes the rest, and returns all that was counted.
    pub fn end(&mut self, coordinator: &mut Coordinator) -> Phase {
        let last = coordinator.take_counts();
        self.add(&last);
        let wall = coordinator.now() - self.began;
        let busy = coordinator.thread_times();
        let busy =
            busy.iter().zip(&self.thread_cpu).map(|(after, before)| (after - before) as f64 / wall as f64);
        let arms = self.counts.iter().zip(&self.running).enumerate();
        Phase {
            name: self.name.clone(),
            wall_s: seconds(wall),
            arms: arms
                .map(|(arm, (counts, running))| arm_result(&coordinator.load, arm, counts, *running))
                .collect(),
            driver: Audit {
                cpu_s: seconds(own_time() - self.own_cpu),
                thread_busy_shares: busy.collect(),
                peak_memory_bytes: peak_memory_bytes(),
            },
            interrupted_by: None,
        }
    }
}
