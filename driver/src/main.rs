//! The program: reads a command line or a job, and writes lines.

mod cli;
mod text;

use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};

use clap::Parser;
use pgdyno_driver::commands::Command;
use pgdyno_driver::conninfo::Keywords;
use pgdyno_driver::control::Event;
use pgdyno_driver::error::{Error, Result};
use pgdyno_driver::job::Job;
use pgdyno_driver::loading::load;
use pgdyno_driver::run::{Interrupted, run};
use pgdyno_driver::signals;
use pgdyno_driver::terminal;
use pgdyno_driver::workload::catalogue::{self, Request};
use pgdyno_driver::workload::{Pace, sampled};
use serde_json::Value;

use cli::{Arguments, LoadArguments, RunArguments, StatementsArguments, Task};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_json =
        matches!(&arguments.task, Task::Serve) || matches!(&arguments.task, Task::Run(run) if run.json);
    let result = match arguments.task {
        Task::Run(arguments) => run_alone(&arguments),
        Task::Load(arguments) => load_tables(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Serve => serve(),
        Task::Statements(arguments) => print_statements(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Workloads => terminal::print_lines(&catalogue::names().join("\n")).map(|()| ExitCode::SUCCESS),
    };
    let error = match result {
        Ok(status) => return status,
        Err(error) => error,
    };
    if is_json {
        // If the output is closed, only the exit status remains.
        let _ = print_event(&Event::Error(error.clone()));
    }
    terminal::print_stderr(&error);
    ExitCode::FAILURE
}

/// Reads the job from the first line of standard input, and commands from the others.
fn serve() -> Result<ExitCode> {
    let (sender, commands) = mpsc::channel();
    let interrupts = Interrupts::through(&sender)?;
    let mut first = String::new();
    io::stdin()
        .read_line(&mut first)
        .map_err(|error| Error::new(format!("could not read the job: {error}")))?;
    let job = Job::parse(&first)?;
    std::thread::spawn(move || read_commands(&sender));
    let outcome = run(&job, &commands, &mut |event| {
        interrupts.notice(event);
        print_event(event)
    });
    outcome.map(exit_status)
}

/// Turns signals into commands once the run is ready to obey them.
struct Interrupts {
    is_ready: Arc<AtomicBool>,
}

impl Interrupts {
    fn through(commands: &Sender<Result<Command>>) -> Result<Self> {
        let (commands, is_ready) = (commands.clone(), Arc::new(AtomicBool::new(false)));
        let has_results = is_ready.clone();
        signals::watch(move |signal| {
            has_results.load(Ordering::Relaxed) && commands.send(Ok(Command::Interrupt(signal))).is_ok()
        })?;
        Ok(Self { is_ready })
    }

    fn notice(&self, event: &Event) {
        if matches!(event, Event::Ready { .. }) {
            self.is_ready.store(true, Ordering::Relaxed);
        }
    }
}

fn exit_status(interrupted: Option<Interrupted>) -> ExitCode {
    let Some(Interrupted { signal, failure }) = interrupted else { return ExitCode::SUCCESS };
    let name = signal.name();
    terminal::print_stderr(&format_args!("terminated by {name}: results cover the time until then"));
    if let Some(failure) = failure {
        terminal::print_stderr(&failure);
    }
    ExitCode::from(signal.exit_status())
}

fn read_commands(sender: &Sender<Result<Command>>) {
    for line in io::stdin().lock().lines() {
        let command =
            line.map_err(|error| Error::new(format!("could not read a command: {error}"))).and_then(|line| {
                serde_json::from_str(&line)
                    .map_err(|error| Error::new(format!("invalid command: {line}")).detail(error.to_string()))
            });
        if sender.send(command).is_err() {
            return;
        }
    }
    // Standard input was closed. The send fails only if the run has ended, too.
    let _ = sender.send(Ok(Command::Stop));
}

/// Sends the commands of the command line, each after completion of the previous one.
fn run_alone(arguments: &RunArguments) -> Result<ExitCode> {
    let job = arguments.job()?;
    let (sender, commands) = mpsc::channel();
    let interrupts = Interrupts::through(&sender)?;
    let mut waiting = arguments.commands(&job)?.into_iter();
    let outcome = run(&job, &commands, &mut |event| {
        interrupts.notice(event);
        if matches!(event, Event::Ready { .. } | Event::RunEnded { .. } | Event::Phase(_))
            && let Some(command) = waiting.next()
        {
            // The receiver lives until `run` returns.
            let _ = sender.send(Ok(command));
        }
        if arguments.json {
            return print_event(event);
        }
        text::describe(event).map_or(Ok(()), |lines| terminal::print_lines(&terminal::printable(&lines)))
    });
    outcome.map(exit_status)
}

fn load_tables(arguments: &LoadArguments) -> Result<()> {
    let options = Value::Object(cli::read_options(&arguments.options)?);
    let tables = catalogue::tables(&arguments.workload, &options, arguments.seed)?;
    let answer_limit = arguments.answer_limit()?;
    let keywords = Keywords::parse(&arguments.target)?.or_environment(|name| std::env::var(name).ok());
    let mut progress = text::Progress::start();
    load(&keywords.resolve()?, &tables, answer_limit, |done, total| progress.show(done, total))
}

fn print_statements(arguments: &StatementsArguments) -> Result<()> {
    let options = arguments.options(std::io::stdin().lock())?;
    let request = Request { name: &arguments.workload, options: &options, clients: 1, seed: arguments.seed };
    let sample = sampled::sample(&mut catalogue::roles(&request, Pace::Closed)?, arguments.transactions);
    let line =
        serde_json::to_string(&sample).map_err(|error| Error::new(format!("cannot print: {error}")))?;
    terminal::print_lines(&line)
}

fn print_event(event: &Event) -> Result<()> {
    let line = serde_json::to_string(event).map_err(|error| Error::new(format!("cannot print: {error}")))?;
    terminal::print_lines(&line)
}
