//! Processor time: our own, other processes', and where our threads run.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::clock::{Nanos, SECOND};
use crate::error::{Error, Result};

/// Binds the calling thread to one CPU.
pub fn pin(cpu: usize) -> Result<()> {
    let result = unsafe {
        // SAFETY: a `cpu_set_t` is plain bits, and the macros stay within it for the checked number.
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(unusable(cpu, "there is no such CPU"));
        }
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(unusable(cpu, &io::Error::last_os_error().to_string())) }
}

fn unusable(cpu: usize, why: &str) -> Error {
    Error::new(format!("cannot run on CPU {cpu}: {why}"))
        .hint("name CPUs that this process may use (see Cpus_allowed_list in /proc/self/status)")
}

/// Processor time that this whole process has used.
pub fn own_time() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe {
        // SAFETY: `time` is a valid place for the result. This clock always exists on Linux.
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
    }
    time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned()
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> libc::pid_t {
    unsafe {
        // SAFETY: the call has no arguments and cannot fail.
        libc::gettid()
    }
}

/// Peak memory of this process in bytes; 0 if the kernel does not say.
///
/// Not `getrusage`: its value begins with the peak of the program that started this one.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Reads the processor time of other processes, again and again: their files stay open.
#[derive(Default)]
pub struct ProcessTimes {
    files: Vec<(File, Nanos)>,
}

impl ProcessTimes {
    /// Opens the processes that exist; the others have ended already.
    pub fn open(pids: &[u32]) -> Self {
        let open = |pid| File::open(format!("/proc/{pid}/schedstat")).ok().map(|file| (file, 0));
        Self { files: pids.iter().filter_map(open).collect() }
    }

    /// Opens threads of this process.
    pub fn open_threads(ids: &[libc::pid_t]) -> Self {
        let open = |id| File::open(format!("/proc/self/task/{id}/schedstat")).ok().map(|file| (file, 0));
        Self { files: ids.iter().filter_map(open).collect() }
    }

    /// The sum of their times. A process that has ended counts as last read.
    pub fn read(&mut self) -> Nanos {
        let mut buffer = [0; 64];
        for (file, last) in &mut self.files {
            let count = file.read_at(&mut buffer, 0).unwrap_or(0);
            let text = std::str::from_utf8(&buffer[..count]).unwrap_or_default();
            *last = text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(*last);
        }
        self.files.iter().map(|(_, last)| last).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_this_process_grows_with_work() {
        let mut times = ProcessTimes::open(&[std::process::id()]);
        let before = times.read();
        let mut sum = 0u64;
        while times.read() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(own_time() > 0);
    }

    #[test]
    fn a_process_that_does_not_exist_has_used_nothing() {
        assert_eq!(ProcessTimes::open(&[u32::MAX]).read(), 0);
    }

    #[test]
    fn peak_memory_stays_when_memory_is_given_back() {
        let before = peak_memory_bytes();
        assert!(before > 0);
        drop(std::hint::black_box(vec![1u8; 200 << 20]));
        assert!(peak_memory_bytes() >= 200 << 20);
    }

    #[test]
    fn an_impossible_cpu_is_named() {
        assert_eq!(pin(1 << 20).unwrap_err().message, "cannot run on CPU 1048576: there is no such CPU");
    }
}
