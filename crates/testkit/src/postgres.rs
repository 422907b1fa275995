//! A server of PostgreSQL for one test program, or one test.

use crate::{fixtures, not_installed};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes a server in a directory of its own, as somebody else where root runs it, since it refuses root. It says where it listens,
/// and ends when its input does: with the test program, however that ends. Where `PORT` is set it listens there, too, lets in whom `HBA`
/// says, and has TLS where `CERTIFICATE` is set.
const SCRIPT: &str = r#"
[ "$(id -u)" != 0 ] || exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "$0"
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
cd / && dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
initdb --pgdata "$dir/data" --username test --auth trust --encoding UTF8 --locale C.UTF-8 --no-sync >"$dir/log" 2>&1 || exit 1
set -- -c listen_addresses=
if [ -n "$PORT" ]; then
    set -- -c listen_addresses=127.0.0.1 -p "$PORT"
    echo "$HBA" >"$dir/data/pg_hba.conf"
fi
if [ -n "$CERTIFICATE" ]; then
    set -- "$@" -c ssl=on -c ssl_ca_file=root.crt
    echo "$CERTIFICATE" >"$dir/data/server.crt"
    echo "$ROOT" >"$dir/data/root.crt"
    (umask 077 && echo "$KEY" >"$dir/data/server.key")
fi
export PGPORT=${PORT:-5432}
postgres -D "$dir/data" -k "$dir" "$@" -c fsync=off -c max_connections=400 >"$dir/log" 2>&1 </dev/null &
until psql -h "$dir" -U test -c '' postgres >/dev/null 2>&1; do
    kill -0 $! 2>/dev/null || exit 1
    sleep 0.05
done
echo "postgresql://test@$(echo "$dir" | sed s,/,%2F,g)"
read -r end
kill -INT $!
wait $!
"#;

/// The address of a new database in a server of PostgreSQL that this program has for itself; it keeps nothing beyond its end. `None` where
/// PostgreSQL is not installed, which is said.
///
/// # Panics
/// Where the database cannot be made.
#[expect(clippy::panic, reason = "fails the test that called")]
pub fn postgres() -> Option<String> {
    static SERVER: OnceLock<Option<(String, ChildStdin)>> = OnceLock::new();
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let server = SERVER.get_or_init(|| {
        let started = start(&[]);
        if started.is_none() {
            not_installed("PostgreSQL");
        }
        started
    });
    let (server, _) = server.as_ref()?;
    let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let made = psql(&format!("{server}/postgres"), &format!("CREATE DATABASE {name}"));
    made.unwrap_or_else(|why| panic!("{name}: {why}"));
    Some(format!("{server}/{name}"))
}

/// A server of PostgreSQL that listens at a port of 127.0.0.1, until it is dropped.
#[derive(Debug)]
pub struct NetworkPostgres {
    /// The address of its database `postgres` for whoever may do everything, without the network.
    pub url: String,
    /// Where it listens.
    pub port: u16,
    _input: ChildStdin,
}

/// A server of its own: `hba` has lines of pg_hba.conf, `certificate` the name of a certificate in fixtures/tls, if it has TLS. `None` where
/// PostgreSQL is not installed, which is said.
///
/// # Panics
/// Where there is no port, or no such certificate.
#[expect(clippy::panic, reason = "fails the test that called")]
pub fn postgres_by_network(hba: &str, certificate: Option<&str>) -> Option<NetworkPostgres> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let port = port.unwrap_or_else(|why| panic!("no port: {why}")).port();
    let mut settings = vec![("PORT", port.to_string()), ("HBA", format!("local all test trust\n{hba}"))];
    if let Some(name) = certificate {
        let read = |name: &str| {
            let path = fixtures().join("tls").join(name);
            std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        };
        settings.push(("CERTIFICATE", read(&format!("{name}.pem"))));
        settings.push(("KEY", read(&format!("{name}.key"))));
        settings.push(("ROOT", read("root.pem")));
    }
    let Some((url, input)) = start(&settings) else {
        not_installed("PostgreSQL");
        return None;
    };
    Some(NetworkPostgres { url: format!("{url}/postgres?port={port}"), port, _input: input })
}

fn start(settings: &[(&str, String)]) -> Option<(String, ChildStdin)> {
    let mut command = Command::new("sh");
    for name in ["PORT", "HBA", "CERTIFICATE", "KEY", "ROOT"] {
        command.env_remove(name);
    }
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    command.args(["-c", SCRIPT, SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let (stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
    let mut url = String::new();
    BufReader::new(stdout).read_line(&mut url).ok()?;
    let url = url.trim_end();
    (!url.is_empty()).then(|| (url.to_owned(), stdin))
}

/// What PostgreSQL's own client says of a statement; else its error.
///
/// # Errors
/// Where the statement fails.
pub fn psql(database: &str, sql: &str) -> Result<String, String> {
    let mut command = Command::new("psql");
    command.args([database, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql]);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
