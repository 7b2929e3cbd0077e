//! Runs the driver as a program. Every wait has a limit: a driver that hangs is killed, and fails the test.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What takes seconds on an idle machine takes less than this on a slow or busy one, too.
const LIMIT: Duration = Duration::from_secs(120);

/// The most that a test takes: one that asks for events until they say enough fails then.
const LIMIT_OF_ALL: Duration = Duration::from_secs(600);

/// What a driver left behind.
pub struct Ended {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// The events of this name, in order.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let events = self.out.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
        events.filter(|event| event["event"] == name).collect()
    }

    /// The only error event.
    pub fn error(&self) -> Value {
        let mut errors = self.events("error");
        assert_eq!((self.status, errors.len()), (Some(1), 1), "{}\n{}", self.out, self.err);
        errors.remove(0)
    }

    /// The results of the only role of an arm in the last phase.
    pub fn role(&self, arm: usize) -> Value {
        assert_eq!(self.status, Some(0), "{}\n{}", self.out, self.err);
        self.events("phase").pop().expect("a phase")["arms"][arm]["roles"][0].clone()
    }
}

/// Prepares the driver, without this environment's server, and with SIGINT as a terminal's programs have it.
pub fn driver(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno-driver"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    unsafe {
        // SAFETY: between fork and exec only `signal` is called, which may be called there.
        command.pre_exec(heed_interrupts);
    }
    command
}

/// The tests may run where SIGINT is ignored (`nohup`, a background job): the driver would inherit that, and obey.
fn heed_interrupts() -> io::Result<()> {
    let before = unsafe {
        // SAFETY: no handler is installed, only the default restored.
        libc::signal(libc::SIGINT, libc::SIG_DFL)
    };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs the driver to its end.
pub fn run(arguments: &[&str]) -> Ended {
    Driver::spawn(driver(arguments)).end()
}

/// A driver at work, whose events are read as they come.
pub struct Driver {
    pub child: Child,
    started: Instant,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: String,
    errors: Receiver<String>,
}

impl Driver {
    /// Starts `serve` with a job.
    pub fn serve(job: &Value) -> Self {
        let mut command = driver(&["serve"]);
        command.stdin(Stdio::piped());
        let mut served = Self::spawn(command);
        served.send(job);
        served
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (line, lines) = channel();
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                BufReader::new(out).lines().map_while(Result::ok).try_for_each(|text| line.send(text))
            });
        }
        let (error, errors) = channel();
        if let Some(mut err) = child.stderr.take() {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = err.read_to_string(&mut text);
                error.send(text)
            });
        }
        let input = child.stdin.take();
        Self { child, started: Instant::now(), input, lines, seen: String::new(), errors }
    }

    /// Sends one line; a driver that has ended does not take it.
    pub fn send(&mut self, line: &Value) {
        let _ = writeln!(self.input.as_ref().expect("standard input is open"), "{line}");
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the next event of this name and returns it; others are kept for `end`.
    pub fn event(&mut self, name: &str) -> Value {
        loop {
            assert!(self.started.elapsed() < LIMIT_OF_ALL, "waited in vain for {name} after\n{}", self.seen);
            let line = self.lines.recv_timeout(LIMIT).unwrap_or_else(|_| {
                let _ = self.child.kill();
                panic!("no event {name} after\n{}\n{:?}", self.seen, self.errors.recv_timeout(LIMIT))
            });
            self.seen += &line;
            self.seen.push('\n');
            let event: Value = serde_json::from_str(&line).expect(&line);
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Waits until transactions of its first role have ended in an interval that is told from now on.
    pub fn await_transactions(&mut self) {
        while self.event("interval")["roles"][0]["transactions"] == 0 {}
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let status = wait(&mut self.child);
        for line in &self.lines {
            self.seen += &line;
            self.seen.push('\n');
        }
        Ended { status: status.code(), out: self.seen, err: self.errors.recv().unwrap_or_default() }
    }
}

/// Waits for the end of a process.
pub fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("the driver hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
