//! How a run learns that it is to end: it is told to, nobody gives commands any more, or a signal comes.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};

use crate::error::{Error, Result};
use crate::run::Command;
use crate::signals::Signal;

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was told to, or nobody is there to give commands any more.
    Told,
    /// By a signal.
    Signalled(Signal),
}

impl Ending {
    /// The end that a command asks for, if it does.
    pub fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Stop => Some(Self::Told),
            Command::Interrupt(signal) => Some(Self::Signalled(*signal)),
            _ => None,
        }
    }
}

/// The commands of a run, in order. When nobody is left to give any, that is one, too: to stop.
pub struct Commands<'a> {
    receiver: &'a Receiver<Result<Command>>,
    put_off: VecDeque<Result<Command>>,
}

impl<'a> Commands<'a> {
    /// Takes commands from there.
    pub fn new(receiver: &'a Receiver<Result<Command>>) -> Self {
        Self { receiver, put_off: VecDeque::new() }
    }

    /// Waits for the next one.
    pub fn wait(&mut self) -> Result<Command> {
        self.put_off.pop_front().or_else(|| self.receiver.recv().ok()).unwrap_or(Ok(Command::Stop))
    }

    /// Takes the next one, if there is one.
    pub fn look(&mut self) -> Result<Option<Command>> {
        if let Some(command) = self.put_off.pop_front() {
            return command.map(Some);
        }
        match self.receiver.try_recv() {
            Ok(command) => command.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Ok(Some(Command::Stop)),
        }
    }

    /// Looks while only an end may be asked for.
    pub fn asked_to_end(&mut self) -> Result<Option<Ending>> {
        let Some(command) = self.look()? else { return Ok(None) };
        Ending::of(&command).map(Some).ok_or_else(|| unexpected(&command))
    }

    /// Looks for a signal; all other commands are put off until somebody takes them.
    pub fn signal(&mut self) -> Option<Signal> {
        while let Ok(command) = self.receiver.try_recv() {
            if let Ok(Command::Interrupt(signal)) = command {
                return Some(signal);
            }
            self.put_off.push_back(command);
        }
        None
    }
}

/// Refuses a command that cannot be obeyed while a run is under way.
pub fn unexpected(command: &Command) -> Error {
    Error::new("a command came at the wrong time").detail(format!("{command:?} while a run is under way"))
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
        assert_eq!(commands.look().unwrap(), Some(rate(1.0)));
        assert_eq!(commands.wait().unwrap(), rate(2.0));
        assert_eq!(commands.asked_to_end().unwrap(), Some(Ending::Told));
        assert_eq!(commands.look().unwrap(), None);
    }

    #[test]
    fn when_nobody_gives_commands_any_more_the_run_is_to_stop_after_those_that_were_put_off() {
        let (sender, receiver) = channel();
        let mut commands = Commands::new(&receiver);
        sender.send(Ok(rate(1.0))).unwrap();
        drop(sender);
        assert_eq!(commands.signal(), None);
        let taken = [commands.wait(), commands.wait(), commands.look().map(Option::unwrap)];
        assert_eq!(taken.map(Result::unwrap), [rate(1.0), Command::Stop, Command::Stop]);
    }

    #[test]
    fn what_is_no_end_is_refused_while_only_an_end_may_be_asked_for() {
        let (sender, receiver) = channel();
        sender.send(Ok(rate(1.0))).unwrap();
        let error = Commands::new(&receiver).asked_to_end().unwrap_err();
        assert_eq!(error.detail.unwrap(), "Rate { rate: 1.0 } while a run is under way");
    }
}
