//! What is done before a workload's clients start and after they have finished: statements, not transactions.

/// Statements around a workload, each sent by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chores {
    /// Before anything is prepared, one after the other.
    pub before: Vec<String>,
    /// When all clients have finished: stages one after the other, the lists of a stage at the same time on
    /// connections of their own.
    pub after: Vec<Vec<Vec<String>>>,
}
