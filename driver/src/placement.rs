//! Assigns clients to connections and connections to threads.
//!
//! Clients with the same index share a thread, whatever their role, because the Insert Benchmark's roles wait
//! for each other.

use std::sync::Arc;

use crate::error::Result;
use crate::load::Load;
use crate::random::Random;
use crate::reconnect;
use crate::schedule::Schedule;
use crate::session::Session;
use crate::session_queue::Group;
use crate::think_time::ThinkTime;
use crate::transaction_log::TransactionLog;
use crate::workload::{Client, Pace};

/// A thread's sessions, their groups, and its logs.
pub struct ThreadLoad {
    /// The sessions of this thread.
    pub sessions: Vec<Session>,
    /// Index of each session's group.
    pub group_of: Vec<usize>,
    /// Random streams of the pauses, by session.
    pub pauses: Vec<Random>,
    /// The groups, each with a schedule.
    pub groups: Vec<Group>,
    /// Transaction logs by arm.
    pub logs: Vec<Option<TransactionLog>>,
}

/// A role's clients in one arm, and their pace.
pub struct RoleClients {
    /// The streams of transactions.
    pub clients: Vec<Box<dyn Client>>,
    /// The pace per client.
    pub pace: Pace,
    /// Whether the clients of a thread share one schedule, at their combined rate.
    pub is_shared: bool,
}

/// Connects all clients, given as `clients[arm][role]`, and returns one `ThreadLoad` per thread.
pub fn place_clients(
    load: &Arc<Load>,
    clients: Vec<Vec<RoleClients>>,
    threads: usize,
    seed: u64,
) -> Result<Vec<ThreadLoad>> {
    let mut thread_loads = Vec::new();
    for thread in 0..threads {
        thread_loads.push(ThreadLoad {
            sessions: Vec::new(),
            group_of: Vec::new(),
            pauses: Vec::new(),
            groups: Vec::new(),
            logs: logs(load, thread)?,
        });
    }
    for (arm, roles) in clients.into_iter().enumerate() {
        for (role, role_clients) in roles.into_iter().enumerate() {
            assign(load, &mut thread_loads, (arm, role), role_clients, seed)?;
        }
    }
    Ok(thread_loads)
}

fn logs(load: &Load, thread: usize) -> Result<Vec<Option<TransactionLog>>> {
    let create = |prefix: &std::path::PathBuf| TransactionLog::create(prefix, thread);
    load.arms.iter().map(|arm| arm.log_prefix.as_ref().map(create).transpose()).collect()
}

fn assign(
    load: &Load,
    thread_loads: &mut [ThreadLoad],
    (arm, role): (usize, usize),
    role_clients: RoleClients,
    seed: u64,
) -> Result<()> {
    let (threads, total) = (thread_loads.len(), role_clients.clients.len());
    let name = load.roles[role].name;
    let mut shared = vec![None; threads];
    for (index, client) in role_clients.clients.into_iter().enumerate() {
        let thread = index % threads;
        let thread_load = &mut thread_loads[thread];
        let statements = client.statements(load.roles[role].statements.len());
        let transport = reconnect::open(load, (arm, role, index), statements)?;
        thread_load.sessions.push(Session::new((arm, role, index), client, transport)?);
        thread_load.pauses.push(ThinkTime::stream(seed, name, index));
        // Schedules depend on the seed, the role and the index, not on the arm: all arms have equal ones.
        let new_group = |thread_load: &mut ThreadLoad, pace: Pace, number: usize, clients: usize| {
            let random = Random::stream(seed, &format!("arrivals of {name}"), number as u64);
            thread_load.groups.push(Group::new(arm, Schedule::new(times(pace, clients), random), clients));
            thread_load.groups.len() - 1
        };
        let group = if role_clients.is_shared {
            *shared[thread].get_or_insert_with(|| {
                let clients = (total - thread).div_ceil(threads);
                new_group(thread_load, role_clients.pace, thread, clients)
            })
        } else {
            new_group(thread_load, role_clients.pace, index, 1)
        };
        thread_load.group_of.push(group);
    }
    Ok(())
}

/// The combined pace of several clients.
fn times(pace: Pace, clients: usize) -> Pace {
    match pace {
        Pace::Open { rate, arrivals } => Pace::Open { rate: rate * clients as f64, arrivals },
        other => other,
    }
}
