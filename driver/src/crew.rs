//! Puts clients on connections and connections on threads.
//!
//! Clients with the same number share a thread, whatever their role: the roles of the Insert Benchmark wait for
//! each other.

use std::sync::Arc;

use crate::error::Result;
use crate::load::Load;
use crate::random::Random;
use crate::reconnect;
use crate::roster::Group;
use crate::schedule::Schedule;
use crate::session::Session;
use crate::think_time::ThinkTime;
use crate::transaction_log::TransactionLog;
use crate::workload::{Client, Pace};

/// A thread's sessions, their groups, and where it logs.
pub struct Crew {
    /// The sessions of this thread.
    pub sessions: Vec<Session>,
    /// Index of each session's group.
    pub group_of: Vec<usize>,
    /// What each session's pauses are drawn from.
    pub pauses: Vec<Random>,
    /// Their schedules.
    pub groups: Vec<Group>,
    /// Transaction logs by arm.
    pub logs: Vec<Option<TransactionLog>>,
}

/// A role's clients in one arm, and when they work.
pub struct RoleClients {
    /// The streams of transactions.
    pub clients: Vec<Box<dyn Client>>,
    /// When their transactions start.
    pub pace: Pace,
    /// Whether the clients of a thread share one schedule, with the rate of all of them.
    pub is_shared: bool,
}

/// Connects all clients of all arms, `clients[arm][role]`, and returns one crew per thread.
pub fn muster(
    load: &Arc<Load>,
    clients: Vec<Vec<RoleClients>>,
    threads: usize,
    seed: u64,
) -> Result<Vec<Crew>> {
    let mut crews = Vec::new();
    for thread in 0..threads {
        crews.push(Crew {
            sessions: Vec::new(),
            group_of: Vec::new(),
            pauses: Vec::new(),
            groups: Vec::new(),
            logs: logs(load, thread)?,
        });
    }
    for (arm, roles) in clients.into_iter().enumerate() {
        for (role, role_clients) in roles.into_iter().enumerate() {
            assign(load, &mut crews, (arm, role), role_clients, seed)?;
        }
    }
    Ok(crews)
}

fn logs(load: &Load, thread: usize) -> Result<Vec<Option<TransactionLog>>> {
    let create = |prefix: &std::path::PathBuf| TransactionLog::create(prefix, thread);
    load.arms.iter().map(|arm| arm.log_prefix.as_ref().map(create).transpose()).collect()
}

fn assign(
    load: &Load,
    crews: &mut [Crew],
    (arm, role): (usize, usize),
    role_clients: RoleClients,
    seed: u64,
) -> Result<()> {
    let (threads, total) = (crews.len(), role_clients.clients.len());
    let name = load.roles[role].name;
    let mut shared = vec![None; threads];
    for (index, client) in role_clients.clients.into_iter().enumerate() {
        let thread = index % threads;
        let crew = &mut crews[thread];
        let statements = client.statements(load.roles[role].statements.len());
        let transport = reconnect::open(load, (arm, role, index), statements)?;
        crew.sessions.push(Session::new((arm, role, index), client, transport)?);
        crew.pauses.push(ThinkTime::stream(seed, name, index));
        // Arms have equal schedules: the seed, the role and the number decide, not the arm.
        let new_group = |crew: &mut Crew, pace: Pace, number: usize, clients: usize| {
            let random = Random::stream(seed, &format!("arrivals of {name}"), number as u64);
            crew.groups.push(Group::new(arm, Schedule::new(times(pace, clients), random), clients));
            crew.groups.len() - 1
        };
        let group = if role_clients.is_shared {
            *shared[thread].get_or_insert_with(|| {
                let clients = (total - thread).div_ceil(threads);
                new_group(crew, role_clients.pace, thread, clients)
            })
        } else {
            new_group(crew, role_clients.pace, index, 1)
        };
        crew.group_of.push(group);
    }
    Ok(())
}

/// The pace of several clients together.
fn times(pace: Pace, clients: usize) -> Pace {
    match pace {
        Pace::Open { rate, arrivals } => Pace::Open { rate: rate * clients as f64, arrivals },
        other => other,
    }
}
