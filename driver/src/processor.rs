//! CPU time of this and other processes, and CPU affinity of threads.

use std::io;

use crate::clock::{Nanos, SECOND};
use crate::error::{Error, Result};

/// Pins the calling thread to one CPU.
pub fn pin(cpu: usize) -> Result<()> {
    let result = unsafe {
        // SAFETY: a `cpu_set_t` is plain bits, and the macros stay within it for the checked number.
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(unusable(cpu, "no such CPU"));
        }
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(unusable(cpu, &io::Error::last_os_error().to_string())) }
}

fn unusable(cpu: usize, why: &str) -> Error {
    Error::new(format!("cannot run on CPU {cpu}: {why}"))
        .hint("specify CPUs that this process may use (see Cpus_allowed_list in /proc/self/status)")
}

/// CPU time of this process.
pub fn own_time() -> Nanos {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0) // always exists on Linux
}

/// The calling thread's kernel ID.
pub fn thread_id() -> libc::pid_t {
    unsafe {
        // SAFETY: the call has no arguments and cannot fail.
        libc::gettid()
    }
}

/// Peak memory of this process in bytes; 0 if the kernel does not report it.
///
/// Not from `getrusage`, whose value includes the peak of the process that started this one.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Reads the CPU time of other processes or of threads of this process, repeatedly.
#[derive(Default)]
pub struct ProcessTimes {
    clocks: Vec<(libc::clockid_t, Nanos)>,
}

/// `CPUCLOCK_SCHED` of include/linux/posix-timers_types.h: the sum of the scheduler's run time.
const SCHED: libc::clockid_t = 2;
/// `CPUCLOCK_PERTHREAD_MASK` of the same: one thread instead of all past and present threads of the process.
const PER_THREAD: libc::clockid_t = 4;

impl ProcessTimes {
    /// Opens processes with all their threads. This includes the `io_uring` worker threads of a server's
    /// processes, which /proc/PID/schedstat omits. Processes that do not exist are skipped.
    pub fn open(pids: &[u32]) -> Self {
        let pids = pids.iter().filter_map(|pid| libc::pid_t::try_from(*pid).ok());
        Self::of(pids.map(|pid| (!pid << 3) | SCHED))
    }

    /// Opens threads of this process.
    pub fn open_threads(ids: &[libc::pid_t]) -> Self {
        Self::of(ids.iter().map(|id| (!id << 3) | SCHED | PER_THREAD))
    }

    fn of(clocks: impl Iterator<Item = libc::clockid_t>) -> Self {
        Self { clocks: clocks.filter_map(|clock| read_clock(clock).map(|time| (clock, time))).collect() }
    }

    /// The sum of their CPU times. A process that has exited counts as last read.
    pub fn read(&mut self) -> Nanos {
        for (clock, last) in &mut self.clocks {
            *last = read_clock(*clock).unwrap_or(*last);
        }
        self.clocks.iter().map(|(_, last)| last).sum()
    }
}

/// Reads a clock; `None` if its process has exited.
fn read_clock(clock: libc::clockid_t) -> Option<Nanos> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let result = unsafe {
        // SAFETY: `time` is a valid place for the result.
        libc::clock_gettime(clock, &raw mut time)
    };
    (result == 0).then(|| time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned())
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
    fn threads_that_have_ended_count_too() {
        let before = ProcessTimes::open(&[std::process::id()]).read();
        let used = std::thread::spawn(|| {
            let mut times = ProcessTimes::open_threads(&[thread_id()]);
            while times.read() < 5_000_000 {}
            times.read()
        });
        let used = used.join().unwrap();
        assert!(ProcessTimes::open(&[std::process::id()]).read() - before >= used);
    }

    #[test]
    fn a_process_that_does_not_exist_has_used_nothing() {
        assert_eq!(ProcessTimes::open(&[u32::MAX, 4_194_305]).read(), 0);
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
        assert_eq!(pin(1 << 20).unwrap_err().message, "cannot run on CPU 1048576: no such CPU");
    }
}
