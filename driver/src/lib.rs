//! Issues load on PostgreSQL servers, on schedule and at little cost, and measures it.
//!
//! From the outside in: `run` obeys commands, `coordinator` gives arms their turns, `worker` is the event loop of
//! one thread, `session` the state machine of one connection, `protocol` and `workload` are pure.

pub mod chores;
pub mod clock;
pub mod connect;
pub mod connection_string;
pub mod conninfo;
pub mod coordinator;
pub mod crew;
pub mod dialogue;
pub mod ending;
pub mod error;
pub mod job;
pub mod load;
pub mod loading;
pub mod messages;
pub mod occupancy;
pub mod patience;
pub mod phase;
pub mod poller;
pub mod processor;
pub mod protocol;
pub mod random;
pub mod reconnect;
pub mod record;
pub mod results;
pub mod roster;
pub mod run;
pub mod schedule;
pub mod security;
pub mod session;
pub mod signals;
pub mod terminal;
pub mod think_time;
pub mod timer;
pub mod tls;
pub mod transaction_log;
pub mod transport;
pub mod wire;
pub mod worker;
pub mod workload;
