//! Tests of tests/server and tests/postgres with files in a bucket, a part of it for each, and PostgreSQL where it is installed; and what goes
//! wrong with buckets. `BACKTRAIL_BUCKET` names another server's bucket.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../server/client.rs"]
mod client;
mod faults;
#[path = "../server/intake.rs"]
mod intake;
#[path = "../server/owner_sources.rs"]
mod owner_sources;
#[path = "../server/pages.rs"]
mod pages;
#[path = "../postgres/replicas.rs"]
mod replicas;
#[path = "../server/symbols.rs"]
mod symbols;
#[path = "../server/work.rs"]
mod work;

use backtrail_server::{BucketOptions, ObjectStore};
use backtrail_testkit::BucketServer;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The address of a new database; `None` where PostgreSQL is not installed.
pub(crate) fn database() -> Option<String> {
    backtrail_testkit::postgres()
}

/// A part of the bucket of all tests: of the one that `BACKTRAIL_BUCKET=s3://BUCKET` names, with keys and endpoint as `serve` takes them, or
/// of a server of this program.
pub(crate) fn objects() -> Option<ObjectStore> {
    static SERVER: OnceLock<BucketServer> = OnceLock::new();
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static RUN: OnceLock<u128> = OnceLock::new();
    // Files of an earlier run are still there.
    let run = RUN.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos());
    let prefix = format!("tests-{run}/{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Some(match std::env::var("BACKTRAIL_BUCKET") {
        Ok(bucket) => ObjectStore::parse(format!("{bucket}/{prefix}").as_ref()).unwrap(),
        Err(_) => part_of(SERVER.get_or_init(BucketServer::new), &prefix),
    })
}

/// A part of a bucket.
pub(crate) fn part_of(server: &BucketServer, prefix: &str) -> ObjectStore {
    let mut options = BucketOptions::new("BUCKET", "KEYID", "SECRETKEY");
    options.endpoint = Some(server.url.clone());
    prefix.clone_into(&mut options.prefix);
    ObjectStore::Bucket(options)
}
