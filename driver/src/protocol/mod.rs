//! PostgreSQL's wire protocol, version 3, as pure functions over bytes: frames, authentication, queries.

pub mod answer;
pub mod end_point;
pub mod frames;
pub mod request;
pub mod server_error;
pub mod startup;
