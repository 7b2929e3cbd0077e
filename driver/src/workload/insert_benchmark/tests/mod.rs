//! Tests of the clients of each step and their statements.

mod statements;
mod steps;

use crate::workload::{Client, Next, Role, Transaction};

use super::{DataLength, Domains, Ends, Mode, Options, Rows, Step, step};

fn roles(step: Step, options: &Options) -> Vec<Role> {
    step::roles(step, options).unwrap()
}

fn options(mode: Mode) -> Options {
    Options {
        clients: 2,
        rows: Rows { i0: 1000, i1: 420, i2: 12 },
        step_seconds: 3,
        seed: 42,
        mode,
        ends: Ends::Count,
        deletes: true,
        domains: Domains::default(),
        data_length: DataLength::default(),
        timestamps: super::Timestamps::default(),
    }
}

fn role(step: Step, options: &Options, name: &str) -> Role {
    let found = roles(step, options).into_iter().find(|role| role.name == name);
    found.unwrap_or_else(|| panic!("{} has no role {name}", step.name()))
}

/// The name, text and parameters of a transaction's only call.
fn call(role: &Role, transaction: &Transaction) -> (&'static str, String, Vec<String>) {
    assert_eq!(transaction.calls().len(), 1);
    let call = &transaction.calls()[0];
    let statement = &role.statements[call.statement];
    let arguments =
        transaction.arguments(call).map(|bytes| String::from_utf8(bytes.unwrap().to_vec()).unwrap());
    (statement.name, statement.sql.clone(), arguments.collect())
}

fn next(role: &mut Role, client: usize) -> (&'static str, String, Vec<String>) {
    let mut transaction = Transaction::default();
    assert_eq!(role.clients[client].next(&mut transaction), Next::Ready);
    call(role, &transaction)
}

fn next_text(role: &mut Role, client: usize) -> String {
    next(role, client).2.remove(0)
}

fn poll(client: &mut dyn Client) -> Next {
    client.next(&mut Transaction::default())
}

/// The three roles that write, of one client.
struct Writers {
    insert: Role,
    delete: Role,
    maker: Role,
}

impl Writers {
    fn of(roles: Vec<Role>) -> (Self, Option<Role>) {
        let mut roles = roles.into_iter();
        let mut role = || roles.next().unwrap();
        (Self { insert: role(), delete: role(), maker: role() }, roles.next())
    }

    /// Reads the smallest key.
    fn resync(&mut self, client: usize, smallest: Option<i64>) {
        let maker = &mut self.maker.clients[client];
        assert_eq!(poll(&mut **maker), Next::Ready);
        maker.receive(0, smallest);
        maker.committed(1);
    }
}
