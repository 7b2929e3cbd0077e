//! SIGTERM and SIGINT: the first one asks the run to end with what it has, a second one, or a run that does not
//! end in time, ends the program at once.
//!
//! The signals are blocked in every thread and fetched by one: no handler runs in the middle of anything.

use std::mem::MaybeUninit;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// After a signal the program has so long to end by itself: its drain, the last lines, its threads' end.
const LIMIT: Duration = Duration::from_secs(10);

/// A signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// What `kill` sends.
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

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// The exit status of a program that was ended by it, as shells have it: 130 or 143.
    pub fn exit_status(self) -> u8 {
        128 + self.number() as u8
    }

    /// Whether whoever started this program wants it to ignore the signal (`nohup`, a shell's background job).
    fn is_ignored(self) -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        unsafe {
            // SAFETY: no new action is given, and `action` is read only if the call has filled it.
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

/// Calls `on_first` when the first signal comes, and ends the program if that says that there is nothing to wait
/// for. To be called before any other thread is started.
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

/// Blocks the signals that are not ignored in this thread and those that it starts; returns them.
fn block() -> Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let (set, failure) = unsafe {
        // SAFETY: `sigemptyset` fills the set before it is used; the old mask is not asked for.
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

/// Waits for one of the signals; `None` if none came within the limit.
fn wait(signals: &libc::sigset_t, limit: Option<Duration>) -> Option<Signal> {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().cast_signed(),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    loop {
        let number = unsafe {
            // SAFETY: the set and the limit, if there is one, live through the call; no details are asked for.
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
