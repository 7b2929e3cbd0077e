//! Commands to a run, and the reasons to stop it: a command, the end of the commands, or a signal.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};

use serde::Deserialize;

use crate::clock::Nanos;
use crate::error::{Error, Result};
use crate::signals::Signal;

/// A command to a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Run arms in turn, in this order.
    Turns {
        /// Indices of arms.
        order: Vec<usize>,
        /// Length of a turn.
        slice_s: f64,
        /// Initial part of a turn, excluded from the servers' CPU time.
        #[serde(default)]
        head_s: f64,
        /// Delay before each turn.
        #[serde(default)]
        delay_s: f64,
        /// The server's processes, by arm.
        #[serde(default)]
        pids: Vec<Vec<u32>>,
    },
    /// Run one arm and report intervals.
    Run {
        /// Index of the arm.
        #[serde(default)]
        arm: usize,
        /// Run time; `None`: until stopped.
        #[serde(default)]
        duration_s: Option<f64>,
        /// Start time, in nanoseconds since the epoch; default: now.
        #[serde(default)]
        start_at_ns: Nanos,
        /// Length of an interval.
        #[serde(default = "a_second")]
        interval_s: f64,
    },
    /// Report the current phase and begin a new one.
    Phase {
        /// Name of the new phase.
        name: String,
    },
    /// Change the rate of an open loop.
    Rate {
        /// Transactions per second over all clients of an arm.
        rate: f64,
    },
    /// Stop the run.
    Stop,
    /// Stop soon because of a signal. Never deserialized.
    #[serde(skip)]
    Interrupt(Signal),
}

fn a_second() -> f64 {
    1.0
}

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// `Command::Stop`, or the end of the commands.
    Requested,
    /// A signal.
    Signalled(Signal),
}

impl StopReason {
    /// The reason to stop that a command gives; `None` if it does not stop the run.
    pub fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Stop => Some(Self::Requested),
            Command::Interrupt(signal) => Some(Self::Signalled(*signal)),
            _ => None,
        }
    }
}

/// The commands of a run, in order. A closed channel reads as `Command::Stop`.
pub struct Commands<'a> {
    receiver: &'a Receiver<Result<Command>>,
    deferred: VecDeque<Result<Command>>,
}

impl<'a> Commands<'a> {
    /// Takes commands from `receiver`.
    pub fn new(receiver: &'a Receiver<Result<Command>>) -> Self {
        Self { receiver, deferred: VecDeque::new() }
    }

    /// Waits for the next command.
    pub fn wait(&mut self) -> Result<Command> {
        self.deferred.pop_front().or_else(|| self.receiver.recv().ok()).unwrap_or(Ok(Command::Stop))
    }

    /// Takes the next command; `None` if none is pending.
    pub fn try_next(&mut self) -> Result<Option<Command>> {
        if let Some(command) = self.deferred.pop_front() {
            return command.map(Some);
        }
        match self.receiver.try_recv() {
            Ok(command) => command.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Ok(Some(Command::Stop)),
        }
    }

    /// Takes the next command as a reason to stop. Any other command is an error.
    pub fn stop_requested(&mut self) -> Result<Option<StopReason>> {
        let Some(command) = self.try_next()? else { return Ok(None) };
        StopReason::of(&command).map(Some).ok_or_else(|| unexpected(&command))
    }

    /// Takes a signal if one is pending; defers all other commands.
    pub fn signal(&mut self) -> Option<Signal> {
        while let Ok(command) = self.receiver.try_recv() {
            if let Ok(Command::Interrupt(signal)) = command {
                return Some(signal);
            }
            self.deferred.push_back(command);
        }
        None
    }
}

/// The error for a command that is not valid during a run.
pub fn unexpected(command: &Command) -> Error {
    Error::new("unexpected command").detail(format!("{command:?} is not valid during a run"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn rate(rate: f64) -> Command {
        Command::Rate { rate }
    }

    #[test]
    fn a_signal_overtakes_other_commands_which_keep_their_order() {
        let (sender, receiver) = channel();
        let mut commands = Commands::new(&receiver);
        for command in [rate(1.0), rate(2.0), Command::Interrupt(Signal::Terminate), Command::Stop] {
            sender.send(Ok(command)).unwrap();
        }
        assert_eq!(commands.signal(), Some(Signal::Terminate));
        assert_eq!(commands.signal(), None);
        assert_eq!(commands.try_next().unwrap(), Some(rate(1.0)));
        assert_eq!(commands.wait().unwrap(), rate(2.0));
        assert_eq!(commands.stop_requested().unwrap(), Some(StopReason::Requested));
        assert_eq!(commands.try_next().unwrap(), None);
    }

    #[test]
    fn a_closed_channel_stops_the_run_after_the_deferred_commands() {
        let (sender, receiver) = channel();
        let mut commands = Commands::new(&receiver);
        sender.send(Ok(rate(1.0))).unwrap();
        drop(sender);
        assert_eq!(commands.signal(), None);
        let taken = [commands.wait(), commands.wait(), commands.try_next().map(Option::unwrap)];
        assert_eq!(taken.map(Result::unwrap), [rate(1.0), Command::Stop, Command::Stop]);
    }

    #[test]
    fn any_command_but_a_stop_is_refused_where_only_a_stop_is_valid() {
        let (sender, receiver) = channel();
        sender.send(Ok(rate(1.0))).unwrap();
        let error = Commands::new(&receiver).stop_requested().unwrap_err();
        assert_eq!(error.detail.unwrap(), "Rate { rate: 1.0 } is not valid during a run");
    }
}
