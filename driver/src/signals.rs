//! SIGTERM and SIGINT. The first one requests the run to end with its results so far. A second one, or a
//! timeout, terminates the program immediately.
//!
//! The signals are blocked in every thread and accepted by one, so no handler interrupts other code.

use std::mem::MaybeUninit;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// Time limit after a signal, for the drain, the last lines and the exit of threads.
const LIMIT: Duration = Duration::from_secs(10);

/// A signal that terminates a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT (Ctrl-C).
    Interrupt,
    /// SIGTERM (the default of `kill`).
    Terminate,
}

impl Signal {
    const ALL: [Self; 2] = [Self::Interrupt, Self::Terminate];

    fn number(self) -> libc::c_int {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// The exit status after this signal, as in shells: 130 or 143.
    pub fn exit_status(self) -> u8 {
        128 + self.number() as u8
    }

    /// Whether the parent process set the signal to be ignored (`nohup`, a shell's background job).
    fn is_ignored(self) -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        unsafe {
            // SAFETY: no new action is passed, and `action` is read only if the call has filled it.
            libc::sigaction(self.number(), std::ptr::null(), action.as_mut_ptr()) == 0
                && action.assume_init().sa_sigaction == libc::SIG_IGN
        }
    }
}

impl Serialize for Signal {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Calls `on_first` for the first signal. Exits at once if it returns false, otherwise at a second signal or
/// after the time limit. Must be called before any other thread is started.
pub fn watch(on_first: impl FnOnce(Signal) -> bool + Send + 'static) -> Result<()> {
    let signals = block()?;
    std::thread::spawn(move || {
        let Some(signal) = wait(&signals, None) else { return };
        if on_first(signal) {
            wait(&signals, Some(LIMIT));
        }
        std::process::exit(signal.exit_status().into());
    });
    Ok(())
}

/// Blocks the signals, except ignored ones, in this thread and its future threads; returns them.
fn block() -> Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let (set, failure) = unsafe {
        // SAFETY: `sigemptyset` initializes the set before its use; the old mask is not requested.
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        for signal in Signal::ALL.into_iter().filter(|signal| !signal.is_ignored()) {
            libc::sigaddset(&raw mut set, signal.number());
        }
        (set, libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))
    };
    match failure {
        0 => Ok(set),
        code => {
            let error = std::io::Error::from_raw_os_error(code);
            Err(Error::new(format!("could not prepare for signals: {error}")))
        }
    }
}

/// Waits for one of the signals; `None` if none arrives within the limit.
fn wait(signals: &libc::sigset_t, limit: Option<Duration>) -> Option<Signal> {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().cast_signed(),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    loop {
        let number = unsafe {
            // SAFETY: the set and the limit, if any, outlive the call; no details are requested.
            libc::sigtimedwait(signals, std::ptr::null_mut(), limit)
        };
        if let Some(signal) = Signal::ALL.into_iter().find(|signal| signal.number() == number) {
            return Some(signal);
        }
        // Stopping and continuing the program interrupts the wait.
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
}
