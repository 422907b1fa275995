//! A server of PostgreSQL for one test program.

use crate::not_installed;
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes a server in a directory of its own, as somebody else where root runs it, since it refuses root. It says where it listens,
/// and ends when its input does: with the test program, however that ends.
const SCRIPT: &str = r#"
[ "$(id -u)" != 0 ] || exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "$0"
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
cd / && dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
initdb --pgdata "$dir/data" --username test --auth trust --encoding UTF8 --locale C.UTF-8 --no-sync >"$dir/log" 2>&1 || exit 1
postgres -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off -c max_connections=400 >"$dir/log" 2>&1 </dev/null &
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
        let started = start();
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

fn start() -> Option<(String, ChildStdin)> {
    let mut command = Command::new("sh");
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
