//! The program: command line or job in, lines out.

mod cli;
mod text;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};

use clap::Parser;
use pgdyno_driver::conninfo::Keywords;
use pgdyno_driver::error::{Error, Result};
use pgdyno_driver::job::Job;
use pgdyno_driver::loading::load;
use pgdyno_driver::run::{Command, Event, run};
use pgdyno_driver::workload::catalogue;

use cli::{Arguments, LoadArguments, RunArguments, Task};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_json =
        matches!(&arguments.task, Task::Serve) || matches!(&arguments.task, Task::Run(run) if run.json);
    let result = match arguments.task {
        Task::Run(arguments) => run_alone(&arguments),
        Task::Load(arguments) => load_tables(&arguments),
        Task::Serve => serve(),
        Task::Workloads => print_lines(&catalogue::names().join("\n")),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    if is_json {
        // If nobody reads any more, the exit status has to do.
        let _ = print_event(&Event::Error(error.clone()));
    }
    let _ = writeln!(io::stderr(), "{error}");
    ExitCode::FAILURE
}

/// Takes the job from the first line of the standard input and commands from the others.
fn serve() -> Result<()> {
    let mut first = String::new();
    io::stdin()
        .read_line(&mut first)
        .map_err(|error| Error::new(format!("could not read the job: {error}")))?;
    let job = Job::parse(&first)?;
    let (sender, commands) = mpsc::channel();
    std::thread::spawn(move || read_commands(&sender));
    run(&job, &commands, &mut print_event)
}

fn read_commands(sender: &Sender<Result<Command>>) {
    for line in io::stdin().lock().lines() {
        let command =
            line.map_err(|error| Error::new(format!("could not read a command: {error}"))).and_then(|line| {
                serde_json::from_str(&line).map_err(|error| {
                    Error::new(format!("cannot read the command {line}")).detail(error.to_string())
                })
            });
        if sender.send(command).is_err() {
            return;
        }
    }
}

/// Gives the commands of the command line, each when the one before it is done.
fn run_alone(arguments: &RunArguments) -> Result<()> {
    let job = arguments.job()?;
    let (sender, commands) = mpsc::channel();
    let mut waiting = arguments.commands().into_iter();
    run(&job, &commands, &mut |event| {
        if matches!(event, Event::Ready { .. } | Event::RunEnded { .. } | Event::Phase(_))
            && let Some(command) = waiting.next()
        {
            // The receiver lives until `run` returns.
            let _ = sender.send(Ok(command));
        }
        if arguments.json {
            return print_event(event);
        }
        text::describe(event).map_or(Ok(()), |lines| print_lines(&lines))
    })
}

fn load_tables(arguments: &LoadArguments) -> Result<()> {
    let options = cli::read_options(&arguments.options)?;
    let tables = catalogue::tables(&arguments.workload, &options, arguments.seed)?;
    let keywords = Keywords::parse(&arguments.target)?.or_environment(|name| std::env::var(name).ok());
    let mut progress = text::Progress::start();
    load(&keywords.resolve()?, &tables, |done, total| progress.show(done, total))
}

fn print_event(event: &Event) -> Result<()> {
    let line = serde_json::to_string(event).map_err(|error| Error::new(format!("cannot print: {error}")))?;
    print_lines(&line)
}

fn print_lines(lines: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{lines}")
        .and_then(|()| out.flush())
        .map_err(|error| Error::new(format!("could not print results: {error}")))
}
