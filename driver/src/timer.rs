//! A timer for the event loop, in nanoseconds: `epoll`'s own timeout is in milliseconds.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::clock::{Nanos, SECOND};

/// A one-shot timer.
pub struct Timer {
    descriptor: OwnedFd,
    armed_for: Option<Nanos>,
}

impl Timer {
    /// Creates a disarmed timer.
    pub fn new() -> io::Result<Self> {
        let descriptor = unsafe {
            // SAFETY: the call takes no pointers; its result is checked before taking ownership.
            let raw = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC);
            if raw < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(raw)
        };
        Ok(Self { descriptor, armed_for: None })
    }

    /// Arms the timer for `at`, or disarms it. Does nothing if that is its current setting.
    pub fn set(&mut self, now: Nanos, at: Option<Nanos>) -> io::Result<()> {
        if self.armed_for == at {
            return Ok(());
        }
        let wait = at.map_or(0, |at| at.saturating_sub(now).max(1));
        let setting = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (wait / SECOND).cast_signed(),
                tv_nsec: (wait % SECOND).cast_signed(),
            },
        };
        let result = unsafe {
            // SAFETY: `setting` outlives the call; the old setting is not requested.
            libc::timerfd_settime(self.descriptor.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        self.armed_for = at;
        Ok(())
    }

    /// Resets the timer after it has expired.
    pub fn acknowledge(&mut self) {
        let mut expirations = [0u8; 8];
        unsafe {
            // SAFETY: the buffer has room for the eight bytes that a timerfd writes. The result does not
            // matter: the read only resets the descriptor, and an early wake-up is harmless.
            libc::read(self.descriptor.as_raw_fd(), expirations.as_mut_ptr().cast(), expirations.len());
        }
        self.armed_for = None;
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}
