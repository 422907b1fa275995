//! `backtrail serve`: the server.

mod demo;

use crate::io::console::Console;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use backtrail_server::{
    Config, Copied, ObjectStore, Server, ServerError, TableLimits, check, copy, export, find_owners,
    make_tables, renew_token, restore,
};
use clap::{Args, Subcommand};
use demo::Demo;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a server for a team: it takes crash reports and shows the bugs that they are of.
///
/// The first start makes a project, a key for its clients and a token to log in with, and prints them. See docs/server.md.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The directory that everything is kept in.
    #[arg(long, value_name = "DIR", default_value = "backtrail-data")]
    data: PathBuf,
    /// PostgreSQL in the place of a file in --data: postgresql://USER@HOST/NAME, also from BACKTRAIL_DATABASE. Several servers may
    /// share it, each with a --data of its own. Over a network it has to have TLS and show that it is HOST, unless ?sslmode=WORD says
    /// otherwise: disable, prefer, require, verify-ca, with &sslrootcert=FILE.
    #[arg(long, value_name = "URL", conflicts_with = "demo")]
    database: Option<String>,
    /// Where files are, if not in --data: a directory, or s3://BUCKET[/PREFIX] with keys, region and endpoint in AWS_ACCESS_KEY_ID,
    /// AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL. Servers that share a database share it.
    #[arg(long, value_name = "DIR|URL", conflicts_with = "demo")]
    objects: Option<OsString>,
    /// Keep up to so many gigabytes of a bucket's files in --data, beside the symbols that are in use.
    #[arg(long, value_name = "GB", default_value_t = 10)]
    objects_cache_gb: u32,
    /// The address and port to listen at. For TLS put a proxy in front.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4747")]
    listen: SocketAddr,
    /// The address that clients and people use, where it is another one.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Threads that work reports; 0 means one a processor.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    workers: usize,
    /// Remove the bytes of reports that are older, but for the first and last three of each issue. Counts stay. Without
    /// it nothing is removed.
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u32>,
    /// Remove the bytes of the oldest reports while there are more, with the same exception: gigabytes, as they came.
    #[arg(long, value_name = "GB")]
    keep_gb: Option<u32>,
    /// Look whether the data is whole, and end.
    #[arg(long)]
    check: bool,
    /// Print a new token to log in with, which takes the place of the earlier ones, and end.
    #[arg(long, conflicts_with = "check")]
    renew_token: bool,
    /// Start with the sample reports of a small app, in a directory of their own that is removed at the end.
    #[arg(long, conflicts_with_all = ["data", "check", "renew_token", "keep_days", "keep_gb"])]
    demo: bool,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Copies everything into a directory that is empty or not there yet, rows of PostgreSQL and files of a bucket too, and ends. The server
    /// may run meanwhile.
    Backup {
        /// The directory.
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
    /// Puts a backup to where --data says, which is empty or not there yet, its rows to where --database says, an empty database, its files
    /// to where --objects says, and ends.
    Restore {
        /// The directory of the backup.
        #[arg(value_name = "FROM")]
        from: PathBuf,
    },
    /// Makes the tables of one file of symbols; the server calls it.
    #[command(hide = true)]
    MakeTables {
        /// The file.
        file: PathBuf,
        /// The directory that they are written to.
        to: PathBuf,
        /// Bytes of memory that it may take.
        memory: u64,
        /// Seconds of processor time.
        seconds: u64,
        /// Bytes of all tables.
        bytes: u64,
    },
    /// Reads a linker's map, or says whose code is where in one build; the server calls it.
    #[command(hide = true)]
    FindOwners {
        /// The directory with what is asked, which the answer is written to.
        directory: PathBuf,
        /// Bytes of memory that it may take.
        memory: u64,
        /// Seconds of processor time.
        seconds: u64,
        /// Bytes of the answer.
        bytes: u64,
    },
    /// Prints everything as JSON lines, and ends. The server may run meanwhile.
    Export {
        /// Leave out the bytes of reports, and of what came along with them.
        #[arg(long)]
        no_bytes: bool,
    },
}

pub(crate) fn run(args: &Serve, console: &Console) -> Result<Outcome, Failure> {
    match &args.task {
        Some(Task::Backup { to }) => {
            return copied(copy(&config(args)?, to), &args.data, &to.display(), console);
        }
        Some(Task::Restore { from }) => {
            let config = config(args)?;
            let database = if config.database.is_some() { "PostgreSQL and " } else { "" };
            let to = format!("{database}{}", args.data.display());
            return copied(restore(from, &config), from, &to, console);
        }
        Some(Task::Export { no_bytes }) => return exported(&config(args)?, !no_bytes, console),
        Some(Task::MakeTables { file, to, memory, seconds, bytes }) => {
            make_tables(file, to, TableLimits::new(*memory, *seconds, *bytes), &mut console.stdout())?;
            return Ok(Outcome::Done);
        }
        Some(Task::FindOwners { directory, memory, seconds, bytes }) => {
            find_owners(directory, TableLimits::new(*memory, *seconds, *bytes), &mut console.stdout())?;
            return Ok(Outcome::Done);
        }
        None => {}
    }
    if args.check {
        return checked(args, console);
    }
    if args.renew_token {
        let token = renew_token(&config(args)?).map_err(|error| Failure::Input(error.to_string()))?;
        write(&[format!("token:    {token} (to log in; it is shown this once)")], console)?;
        return Ok(Outcome::Done);
    }
    let demo = if args.demo { Some(Demo::new()?) } else { None };
    let mut config = match &demo {
        Some(demo) => Config::new(&demo.directory),
        None => config(args)?,
    };
    config.tables = this_program();
    config.listen = args.listen;
    config.url.clone_from(&args.url);
    config.workers = args.workers;
    config.keep = args.keep_days.map(|days| Duration::from_secs(u64::from(days) * 86_400));
    config.keep_bytes = args.keep_gb.map(|gigabytes| u64::from(gigabytes) * 1_000_000_000);
    let server = Server::start(config).map_err(|error| Failure::Input(error.to_string()))?;
    if demo.is_some() {
        demo::fill(&server)?;
    }
    server.run(|server| write(&greeting(server), console))?;
    Ok(Outcome::Done)
}

/// Where the data is.
fn config(args: &Serve) -> Result<Config, Failure> {
    let mut config = Config::new(&args.data);
    // Whoever lists the processes of a machine sees their arguments, but not what is in their environment.
    config.database = args.database.clone().or_else(|| std::env::var("BACKTRAIL_DATABASE").ok());
    let objects = args.objects.as_deref().map(ObjectStore::parse).transpose();
    config.objects = objects.map_err(|why| Failure::Input(format!("--objects: {why}")))?;
    config.objects_cache = u64::from(args.objects_cache_gb) * 1_000_000_000;
    Ok(config)
}

/// The program that runs, even where another one took its place meanwhile.
fn this_program() -> Option<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Some(running.to_owned()) } else { std::env::current_exe().ok() }
}

fn greeting(server: &Server) -> Vec<String> {
    let mut lines = vec![format!("listening at {}", server.url())];
    if let Some(first) = server.first_start() {
        lines.push(format!("reports:  curl --data-binary @REPORT {}", first.reports));
        lines.push(format!("DSN:      {}", first.dsn));
        lines.push(format!("token:    {} (to log in; it is shown this once)", first.token));
    }
    lines
}

fn copied(
    copied: Result<Copied, ServerError>,
    from: &Path,
    to: &dyn Display,
    console: &Console,
) -> Result<Outcome, Failure> {
    let copied = copied.map_err(|error| Failure::Input(error.to_string()))?;
    let count = copied.files;
    write(&[format!("{to}: the database and {count} files")], console)?;
    for digest in &copied.missing {
        console.warn(format_args!("{}: the file {digest} is missing", from.display()));
    }
    Ok(if copied.missing.is_empty() { Outcome::Done } else { Outcome::Incomplete })
}

fn exported(config: &Config, bytes: bool, console: &Console) -> Result<Outcome, Failure> {
    let mut out = BufWriter::new(console.stdout());
    let exported = export(config, bytes, &mut out).map_err(|error| Failure::Input(error.to_string()))?;
    out.flush()?;
    for digest in &exported.missing {
        console.warn(format_args!("the file {digest} cannot be read"));
    }
    Ok(if exported.missing.is_empty() { Outcome::Done } else { Outcome::Incomplete })
}

fn checked(args: &Serve, console: &Console) -> Result<Outcome, Failure> {
    let checked = check(&config(args)?).map_err(|error| Failure::Input(error.to_string()))?;
    let mut lines = vec![format!("schema {}", checked.schema)];
    lines.extend(checked.problems.iter().cloned());
    if checked.problems.is_empty() {
        lines.push("whole".to_owned());
    }
    write(&lines, console)?;
    Ok(if checked.problems.is_empty() { Outcome::Done } else { Outcome::BadInput })
}

fn write(lines: &[String], console: &Console) -> Result<(), Failure> {
    let mut out = console.stdout();
    let mut text = Text::new(&mut out, Style::PLAIN);
    lines.iter().try_for_each(|line| text.line(line))?;
    out.flush()?;
    Ok(())
}
