//! Generates load on PostgreSQL servers, on schedule and with little overhead, and measures it.
//!
//! From the outside in: `run` obeys commands, `coordinator` runs arms in turn, `worker` is the event loop of
//! one thread, `session` the state machine of one connection; `protocol` and `workload` are pure.

pub mod answer_timeout;
pub mod clock;
pub mod commands;
pub mod connect;
pub mod connection_string;
pub mod conninfo;
pub mod control;
pub mod coordinator;
pub mod database_locks;
pub mod error;
pub mod job;
pub mod load;
pub mod loading;
pub mod messages;
pub mod phase;
pub mod placement;
pub mod poller;
pub mod processor;
pub mod protocol;
pub mod random;
pub mod reconnect;
pub mod record;
pub mod results;
pub mod run;
pub mod schedule;
pub mod security;
pub mod session;
pub mod session_queue;
pub mod signals;
pub mod stages;
pub mod terminal;
pub mod think_time;
pub mod timer;
pub mod tls;
pub mod transaction_log;
pub mod transport;
pub mod wire;
pub mod worker;
pub mod workload;
