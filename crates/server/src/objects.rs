//! Files by their content, named by SHA-256, written once and never changed: in a directory, or in a bucket of S3's protocol; small ones of
//! reports are packed in the database instead, where one commit writes many.
//!
//! Which of them it is nobody else knows. A file is there before its row is committed, and a row is gone before its file.

#[cfg(feature = "s3")]
mod bucket;
#[cfg(feature = "s3")]
mod cache;
mod folder;
#[cfg(feature = "s3")]
mod s3;

use crate::config::{Config, ObjectStore};
use crate::database::{Connection, Database, OptionalExtension as _, Result, params};
use crate::error::ServerError;
use crate::secret;
use backtrail_store::NewFile;
#[cfg(feature = "s3")]
use bucket::Bucket;
use folder::Folder;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
#[cfg(feature = "s3")]
use std::sync::Arc;
use std::time::Instant;

/// Where files are.
#[derive(Clone)]
pub(crate) struct Objects {
    store: Store,
}

#[derive(Clone)]
enum Store {
    Folder(Folder),
    #[cfg(feature = "s3")]
    Bucket(Arc<Bucket>),
}

/// A file of [`Objects`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    /// The SHA-256 of its bytes.
    pub(crate) digest: String,
    /// How many bytes it has.
    pub(crate) size: u64,
    /// The packed bytes of a small one, for the database; else it is where files are.
    pub(crate) packed: Option<Vec<u8>>,
    /// Where it was just written in a bucket.
    pub(crate) placed: Option<Placed>,
}

/// Where a file was written.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "s3"), allow(dead_code, reason = "only a bucket has places"))]
pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) written: Instant,
}

/// The largest file that may be packed, and the most bytes that a packed one has.
const MAX_PACKED: (usize, usize) = (1 << 20, 64 << 10);

impl Objects {
    /// Uses what the configuration says, and makes the directory.
    pub(crate) fn open(config: &Config) -> Result<Self, ServerError> {
        let objects = Self::at(config)?;
        if !objects.is_remote() {
            let directory = config.objects_directory();
            Folder::open(&directory).map_err(|error| {
                let what = format!("{}: cannot make the directory of files", directory.display());
                ServerError::files(what, error)
            })?;
        }
        Ok(objects)
    }

    /// The same without making anything.
    pub(crate) fn at(config: &Config) -> Result<Self, ServerError> {
        let store = match &config.objects {
            #[cfg(feature = "s3")]
            Some(ObjectStore::Bucket(options)) => {
                let cache = config.data.join("cache");
                Store::Bucket(Arc::new(Bucket::new(options.clone(), cache, config.objects_cache)))
            }
            #[cfg(not(feature = "s3"))]
            Some(ObjectStore::Bucket(_)) => {
                let why = "this program was built without buckets: `cargo build --release --features s3`";
                return Err(ServerError::files("s3://", io::Error::other(why)));
            }
            _ => Store::Folder(Folder::at(&config.objects_directory())),
        };
        Ok(Self { store })
    }

    /// Whether files are on another machine: it may not answer for a while, and what has to be opened is copied here first.
    pub(crate) fn is_remote(&self) -> bool {
        !matches!(self.store, Store::Folder(_))
    }

    /// Makes sure that the files are this database's. Where that cannot be told at present, it is said and made sure of later, before
    /// anything is removed for being unknown.
    pub(crate) fn claim(&self, database: &Database) -> Result<(), ServerError> {
        let _ = database;
        match &self.store {
            Store::Folder(_) => Ok(()),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => match bucket.claim(database) {
                Ok(()) => Ok(()),
                Err(crate::database::DatabaseError::Thread(error))
                    if is_passing(&error) && !is_refusal(&error) =>
                {
                    crate::error::eprint_problem(&format!("{error}: the server starts without it"));
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Packs a small file, and leaves it to the database to keep; writes a larger one. When this returns that is durable.
    pub(crate) fn keep(&self, database: &Database, bytes: &[u8]) -> io::Result<Object> {
        let _ = database;
        let (most, most_packed) = MAX_PACKED;
        if bytes.len() <= most {
            let packed = pack(bytes)?;
            if packed.len() <= most_packed {
                return Ok(Object { packed: Some(packed), ..Object::of(bytes) });
            }
        }
        match &self.store {
            Store::Folder(folder) => folder.put(bytes),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => bucket.put(database, bytes),
        }
    }

    /// Writes a file that is about to be opened, unless it is there. When this returns it is durable.
    pub(crate) fn put(&self, database: &Database, bytes: &[u8]) -> io::Result<Object> {
        let _ = database;
        match &self.store {
            Store::Folder(folder) => folder.put(bytes),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => bucket.put_to_read(database, bytes),
        }
    }

    /// Takes a file that is on disk, whole, and has these bytes, unless it is there.
    pub(crate) fn adopt(&self, database: &Database, file: &Path, object: &Object) -> io::Result<Object> {
        let _ = database;
        match &self.store {
            Store::Folder(folder) => folder.adopt(file, object),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => bucket.adopt(database, file, object),
        }
    }

    /// Whether a file is there, whole, or comes along with its row: asked in the transaction that writes the row, while nobody else does.
    pub(crate) fn has(&self, connection: &Connection, object: &Object) -> Result<bool> {
        let _ = connection;
        if object.packed.is_some() {
            return Ok(true);
        }
        match &self.store {
            Store::Folder(folder) => Ok(folder.has(object)),
            #[cfg(feature = "s3")]
            Store::Bucket(_) => Bucket::has(connection, object),
        }
    }

    /// The same of several.
    pub(crate) fn has_all<'o>(
        &self,
        connection: &Connection,
        objects: impl IntoIterator<Item = &'o Object>,
    ) -> Result<bool> {
        for object in objects {
            if !self.has(connection, object)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A file's bytes, wherever they are.
    pub(crate) fn get(&self, database: &Database, digest: &str) -> io::Result<Vec<u8>> {
        self.bytes(database.read(|connection| kept(connection, digest)), digest)
    }

    /// The same by a connection.
    pub(crate) fn read(&self, connection: &Connection, digest: &str) -> io::Result<Vec<u8>> {
        self.bytes(kept(connection, digest), digest)
    }

    fn bytes(&self, kept: Result<Option<BlobRow>>, digest: &str) -> io::Result<Vec<u8>> {
        let kept = kept.map_err(io::Error::other)?;
        if let Some(BlobRow { packed: Some(packed), size, .. }) = &kept {
            return unpack(packed, *size);
        }
        match &self.store {
            Store::Folder(folder) => fs::read(folder.path(digest)),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => {
                let kept = kept.ok_or(io::ErrorKind::NotFound)?;
                bucket.get(&bucket::name_of(digest, kept.place.as_deref()), digest, kept.size)
            }
        }
    }

    /// Where a file is on this machine, from now on for some minutes at least.
    pub(crate) fn local(&self, database: &Database, digest: &str) -> io::Result<PathBuf> {
        let _ = database;
        match &self.store {
            Store::Folder(folder) => Ok(folder.path(digest)),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => {
                let kept = database.read(|connection| kept(connection, digest)).map_err(io::Error::other)?;
                let Some(kept) = kept else {
                    // It is about to get its row.
                    return Ok(bucket.path(digest));
                };
                bucket.local(&bucket::name_of(digest, kept.place.as_deref()), digest, kept.size)
            }
        }
    }

    /// Where a file is on this machine, if it is.
    pub(crate) fn path(&self, digest: &str) -> PathBuf {
        match &self.store {
            Store::Folder(folder) => folder.path(digest),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => bucket.path(digest),
        }
    }

    /// Removes files that nothing needs: those of requests that a crash cut off between the file and its row.
    pub(crate) fn sweep(&self, database: &Database) -> Result<()> {
        match &self.store {
            Store::Folder(folder) => folder.sweep(database),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => bucket.sweep(database),
        }
    }

    /// Removes files that no row needs since an earlier transaction, and says how many bytes they had. What this does not come to, a
    /// later [`Self::sweep`] does.
    pub(crate) fn remove_unneeded(&self, database: &Database, digests: HashSet<String>) -> Result<i64> {
        match &self.store {
            // The thread that writes does it, so that nobody begins to need one meanwhile.
            Store::Folder(folder) => {
                let folder = folder.clone();
                database.write(move |connection| {
                    let unneeded = unneeded(connection, &digests)?;
                    Ok(removed(unneeded, |digest, _| folder.remove(digest)))
                })
            }
            // Whoever begins to need one writes it anew, under another name.
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => {
                let unneeded = database.read(|connection| unneeded(connection, &digests))?;
                let known = unneeded.into_iter().filter(|unneeded| unneeded.is_known);
                Ok(removed(known, |digest, place| bucket.remove(&bucket::name_of(digest, place))))
            }
        }
    }

    /// What of the files that the database names is not there.
    pub(crate) fn missing(&self, needed: &HashMap<String, Option<String>>) -> io::Result<Vec<String>> {
        let mut missing: Vec<_> = match &self.store {
            Store::Folder(folder) => {
                let is_missing = |digest: &&String| fs::metadata(folder.path(digest)).is_err();
                needed.keys().filter(is_missing).cloned().collect()
            }
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => bucket.compare(needed)?.missing,
        };
        missing.sort();
        Ok(missing)
    }

    /// How many files nothing needs: asked where no server runs. In a bucket younger ones are not counted: a server removes them later.
    pub(crate) fn others(&self, needed: &HashMap<String, Option<String>>) -> io::Result<usize> {
        match &self.store {
            Store::Folder(folder) => Ok(folder.others(needed)?.len()),
            #[cfg(feature = "s3")]
            Store::Bucket(bucket) => Ok(bucket.compare(needed)?.others.len()),
        }
    }

    /// Copies a file, for a backup; `false` where it is not there.
    pub(crate) fn copy_to(&self, to: &Self, database: &Database, digest: &str) -> io::Result<bool> {
        let copied = match (&self.store, &to.store) {
            (Store::Folder(from), Store::Folder(to)) => link(&from.path(digest), &to.path(digest)),
            #[cfg(feature = "s3")]
            (Store::Folder(from), Store::Bucket(to)) => {
                fs::read(from.path(digest)).and_then(|bytes| to.restore(digest, &bytes))
            }
            #[cfg(feature = "s3")]
            (Store::Bucket(_), Store::Folder(to)) => {
                self.get(database, digest).and_then(|bytes| to.put(&bytes).map(drop))
            }
            #[cfg(feature = "s3")]
            (Store::Bucket(_), Store::Bucket(to)) => {
                self.get(database, digest).and_then(|bytes| to.restore(digest, &bytes))
            }
        };
        let _ = database;
        match copied {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            copied => copied.map(|()| true),
        }
    }
}

/// Whether it may go better later by itself: a bucket does not answer. Files that are not there or broken are another matter.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    #[cfg(feature = "s3")]
    return unavailable(error).is_some();
    #[cfg(not(feature = "s3"))]
    {
        let _ = error;
        false
    }
}

/// Whether a bucket said no, so that somebody has to change something.
#[cfg(feature = "s3")]
fn is_refusal(error: &io::Error) -> bool {
    unavailable(error).is_some_and(|unavailable| unavailable.is_refusal)
}

#[cfg(feature = "s3")]
fn unavailable(error: &io::Error) -> Option<&s3::Unavailable> {
    error.get_ref()?.downcast_ref()
}

/// The name of a file by its digest alone: `ab/cdef…`.
fn plain_name(digest: &str) -> String {
    // Digests are our own; what is none has no file.
    let (first, rest) = digest.split_at_checked(2).unwrap_or(("00", "none"));
    format!("{first}/{rest}")
}

/// A file that no row needs.
struct Unneeded {
    digest: String,
    size: i64,
    place: Option<String>,
    /// Whether a row needed it once.
    #[cfg_attr(not(feature = "s3"), allow(dead_code, reason = "a directory knows its files itself"))]
    is_known: bool,
}

fn unneeded(connection: &Connection, digests: &HashSet<String>) -> Result<Vec<Unneeded>> {
    let mut all = Vec::new();
    for digest in digests {
        let row = connection
            .query_row("SELECT refs, size, place FROM blob WHERE digest = ?1", params![digest], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let is_known = row.is_some();
        let (refs, size, place) = row.unwrap_or_default();
        if refs <= 0 {
            all.push(Unneeded { digest: digest.clone(), size, place, is_known });
        }
    }
    Ok(all)
}

fn removed(
    unneeded: impl IntoIterator<Item = Unneeded>,
    remove: impl Fn(&str, Option<&str>) -> io::Result<()>,
) -> i64 {
    let mut gone = 0_i64;
    for Unneeded { digest, size, place, .. } in unneeded {
        if let Err(error) = remove(&digest, place.as_deref()) {
            crate::error::eprint_problem(&format!("the file {digest} cannot be removed: {error}"));
        }
        gone = gone.saturating_add(size);
    }
    gone
}

/// Links a file that nobody changes, or copies it to another file system.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Another file system, or one without links.
        Err(_) => {
            fs::copy(from, to)?;
            fs::File::open(to)?.sync_all()
        }
        Ok(()) => Ok(()),
    }
}

impl Object {
    fn of(bytes: &[u8]) -> Self {
        Self { digest: secret::digest(bytes), size: bytes.len() as u64, packed: None, placed: None }
    }
}

/// Copies a file to where it appears whole, and on disk, or not at all.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = NewFile::create(to)?;
    io::copy(&mut fs::File::open(from)?, &mut copy)?;
    copy.finish()
}

fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = FrameEncoder::new(Vec::new());
    packer.write_all(bytes)?;
    Ok(packer.finish()?)
}

/// The bytes of a packed file, which are so many.
fn unpack(packed: &[u8], size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(MAX_PACKED.0 as u64)).unwrap_or_default());
    FrameDecoder::new(packed).take(size.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size {
        return Ok(bytes);
    }
    let why = format!("expected {size} bytes, found {} in {} packed ones", bytes.len(), packed.len());
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

/// What the database knows of a file.
struct BlobRow {
    packed: Option<Vec<u8>>,
    size: u64,
    #[cfg_attr(not(feature = "s3"), allow(dead_code, reason = "only a bucket has places"))]
    place: Option<String>,
}

fn kept(connection: &Connection, digest: &str) -> Result<Option<BlobRow>> {
    let row = connection.query_row(
        "SELECT packed.bytes, blob.size, blob.place FROM blob LEFT JOIN packed ON packed.id = blob.packed \
         WHERE blob.digest = ?1",
        params![digest],
        |row| {
            let size = u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default();
            Ok(BlobRow { packed: row.get(0)?, size, place: row.get(2)? })
        },
    );
    row.optional()
}

/// A further row needs a file.
pub(crate) fn need(connection: &Connection, object: &Object) -> Result<()> {
    let size = i64::try_from(object.size).unwrap_or(i64::MAX);

    let refs: i64 = connection.query_row(
        "INSERT INTO blob (digest, size, refs) VALUES (?1, ?2, 1) \
         ON CONFLICT (digest) DO UPDATE SET refs = blob.refs + 1 RETURNING refs",
        params![object.digest, size],
        |row| row.get(0),
    )?;
    // What was written last has the row's word: an earlier place may be of a file that was removed since.
    if let Some(placed) = &object.placed {
        connection
            .execute("UPDATE blob SET place = ?2 WHERE digest = ?1", params![object.digest, placed.name])?;
    }
    // Where others need it, it is there already, in one way or the other.
    if let (1, Some(packed)) = (refs, &object.packed) {
        let sql = "INSERT INTO packed (bytes) VALUES (?1) RETURNING id";
        let id: i64 = connection.query_row(sql, params![packed], |row| row.get(0))?;
        connection.execute("UPDATE blob SET packed = ?2 WHERE digest = ?1", params![object.digest, id])?;
    }
    Ok(())
}

/// A row needs a file no more. The file itself is removed once that is certain (`retention`).
pub(crate) fn need_no_more(connection: &Connection, digest: &str) -> Result<()> {
    for sql in [
        "UPDATE blob SET refs = refs - 1 WHERE digest = ?1",
        "DELETE FROM packed WHERE id = (SELECT packed FROM blob WHERE digest = ?1 AND refs = 0)",
        "UPDATE blob SET packed = NULL WHERE digest = ?1 AND refs = 0",
    ] {
        connection.execute(sql, params![digest])?;
    }
    Ok(())
}

/// The files that must be where files are, with their places in a bucket.
pub(crate) fn digests(connection: &Connection) -> Result<HashMap<String, Option<String>>> {
    // A backup may be the last thing that is done with a database of an earlier program.
    let version = connection.version()?;
    let place = if version < FIRST_WITH_PLACES { "NULL" } else { "place" };
    let outside = if version < FIRST_WITH_PACKED {
        ""
    } else if version < FIRST_WITH_TABLES {
        "AND (packed IS NULL OR digest IN (SELECT blob FROM symbol_file))"
    } else if version < FIRST_WITH_SOURCES {
        "AND (packed IS NULL OR digest IN (SELECT blob FROM symbol_file UNION SELECT blob FROM symbol_table))"
    } else {
        "AND (packed IS NULL OR digest IN (SELECT blob FROM symbol_file UNION SELECT blob FROM symbol_table \
         UNION SELECT blob FROM owner_source))"
    };
    let digests = connection.query_map(
        &format!("SELECT digest, {place} FROM blob WHERE refs > 0 {outside}"),
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(digests.into_iter().collect())
}

/// The versions of the schema that have files packed, tables of symbols, places in a bucket, and what tells whose code is whose.
const FIRST_WITH_PACKED: usize = 4;
const FIRST_WITH_TABLES: usize = 12;
const FIRST_WITH_PLACES: usize = 15;
const FIRST_WITH_SOURCES: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Source;
    use crate::database::tests::sources;
    use crate::issues;
    use backtrail_testkit::TempDir;

    /// With a database of each sort.
    fn open(directory: &TempDir) -> Vec<(Objects, Database)> {
        let open = |(source, number): (Source, usize)| {
            let objects = Objects::open(&Config::new(directory.join(format!("data-{number}")))).unwrap();
            (objects, Database::open(source).unwrap())
        };
        sources(directory).into_iter().zip(0..).map(open).collect()
    }

    #[test]
    fn equal_files_are_one() {
        let directory = TempDir::new("server-objects");
        for (objects, database) in open(&directory) {
            let get = |object: &Object| objects.get(&database, &object.digest);
            let one = objects.put(&database, b"one").unwrap();
            assert_eq!(objects.put(&database, b"one").unwrap(), one);
            let two = objects.put(&database, b"two").unwrap();
            assert_eq!((get(&one).unwrap(), one.size), (b"one".to_vec(), 3));
            let needed = two.clone();
            database.write(move |connection| need(connection, &needed)).unwrap();
            objects.sweep(&database).unwrap();
            assert!(get(&one).is_err());
            assert_eq!(get(&two).unwrap(), b"two");
        }
    }

    #[test]
    fn a_file_that_was_cut_is_written_again() {
        let directory = TempDir::new("server-cut");
        for (objects, database) in open(&directory) {
            let object = objects.put(&database, b"whole").unwrap();
            fs::write(objects.path(&object.digest), b"who").unwrap();
            objects.put(&database, b"whole").unwrap();
            assert_eq!(objects.get(&database, &object.digest).unwrap(), b"whole");
        }
    }

    /// Bytes that do not pack.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn small_files_of_reports_are_in_the_database() {
        let directory = TempDir::new("server-packed");
        for (objects, database) in open(&directory) {
            let objects = &objects;
            let (small, large) = (vec![b'x'; 300_000], noise(100_000));
            for bytes in [small, large, Vec::new()] {
                let object = objects.keep(&database, &bytes).unwrap();
                let is_file = fs::exists(objects.path(&object.digest)).unwrap();
                assert_eq!(is_file, object.packed.is_none());
                assert_eq!(is_file, bytes.len() == 100_000);
                // Twice needed, once no more: it stays.
                let kept = object.clone();
                database
                    .write(move |connection| {
                        need(connection, &kept)?;
                        need(connection, &kept)?;
                        need_no_more(connection, &kept.digest)
                    })
                    .unwrap();
                assert_eq!(objects.get(&database, &object.digest).unwrap(), bytes);
                assert_eq!(database.read(digests).unwrap().contains_key(&object.digest), is_file);
                // Needed by nobody, and again.
                let kept = object.clone();
                let rows = database.write(move |connection| {
                    need_no_more(connection, &kept.digest)?;
                    let rows =
                        connection.query_row("SELECT count(*) FROM packed", params![], |row| row.get(0))?;
                    need(connection, &kept)?;
                    Ok::<i64, _>(rows)
                });
                assert_eq!(rows.unwrap(), i64::from(bytes.len() != 300_000), "the first one");
                assert_eq!(objects.get(&database, &object.digest).unwrap(), bytes);
            }
            let faults = database.read(issues::faults).unwrap();
            assert_eq!(faults, ["3 files that other numbers of rows need than is counted"]);
        }
    }

    #[cfg(feature = "s3")]
    #[test]
    fn in_a_bucket_only_old_files_that_nothing_needs_are_removed() {
        let server = backtrail_testkit::BucketServer::new();
        let directory = TempDir::new("server-bucket");
        for (source, number) in sources(&directory).into_iter().zip(0..) {
            let database = Database::open(source).unwrap();
            let mut options = crate::config::BucketOptions::new("BUCKET", "ID", "SECRET");
            options.endpoint = Some(server.url.clone());
            options.prefix = format!("part-{number}");
            let own = format!("{}/", options.prefix);
            let names = || -> Vec<String> {
                let names = server.names();
                names.iter().filter_map(|name| name.strip_prefix(&own)).map(str::to_owned).collect()
            };
            let mut config = Config::new(directory.join(format!("data-{number}")));
            config.objects = Some(ObjectStore::Bucket(options));
            let objects = Objects::open(&config).unwrap();
            objects.claim(&database).unwrap();
            // More than a page of a list has, and what is not ours.
            let kept: Vec<_> =
                (0..7).map(|byte| objects.keep(&database, &noise(100_000 + byte)).unwrap()).collect();
            server.set(&format!("{own}holiday.jpg"), Some(b"x"));
            let needed = kept[..2].to_vec();
            database
                .write(move |connection| {
                    assert!(objects_have(connection, &needed));
                    needed.iter().try_for_each(|object| need(connection, object))
                })
                .unwrap();
            let place = |object: &Object| object.placed.as_ref().unwrap().name.clone();
            objects.sweep(&database).unwrap();
            assert_eq!(names().len(), 9, "others may be about to get their rows");
            server.advance(3 * 3600);
            // Old, and its row is lost.
            let young = objects.keep(&database, &noise(100_100)).unwrap();
            assert_eq!(objects.others(&database.read(digests).unwrap()).unwrap(), 5);
            objects.sweep(&database).unwrap();
            let mut left = vec![place(&kept[0]), place(&kept[1]), place(&young)];
            left.extend(["backtrail".to_owned(), "holiday.jpg".to_owned()]);
            left.sort();
            assert_eq!(names(), left);
            // What a row needs is not written again; what was removed is, under another name.
            assert_eq!(objects.keep(&database, &noise(100_000)).unwrap().placed, None);
            let digest = kept[0].digest.clone();
            database.write(move |connection| need_no_more(connection, &digest)).unwrap();
            let gone = HashSet::from([kept[0].digest.clone(), kept[1].digest.clone()]);
            assert_eq!(objects.remove_unneeded(&database, gone).unwrap(), 100_000);
            assert!(!names().contains(&place(&kept[0])) && names().contains(&place(&kept[1])));
            let again = objects.keep(&database, &noise(100_000)).unwrap();
            assert_ne!(again.placed.as_ref().unwrap().name, place(&kept[0]));
            let needed = again.clone();
            database.write(move |connection| need(connection, &needed)).unwrap();
            assert_eq!(objects.get(&database, &again.digest).unwrap(), noise(100_000));
            let local = objects.local(&database, &again.digest).unwrap();
            assert_eq!(fs::read(local).unwrap(), noise(100_000));
            assert_eq!(objects.missing(&database.read(digests).unwrap()).unwrap(), Vec::<String>::new());
        }
    }

    #[cfg(feature = "s3")]
    fn objects_have(connection: &Connection, objects: &[Object]) -> bool {
        objects.iter().all(|object| Bucket::has(connection, object).unwrap())
    }

    #[test]
    fn packed_bytes_that_are_broken_are_an_error() {
        let packed = pack(&[b'x'; 1000]).unwrap();
        assert_eq!(unpack(&packed, 1000).unwrap(), [b'x'; 1000]);
        assert!(unpack(&packed, 999).is_err());
        assert!(unpack(&packed, 1001).is_err());
        // The mark of the end may be missing, and nothing else.
        for end in 0..packed.len() - 4 {
            assert!(unpack(&packed[..end], 1000).is_err(), "{end}");
        }
    }
}
