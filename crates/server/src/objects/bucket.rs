//! Files in a bucket: `ab/cdef…-KEY`, where KEY is new for each time that the file is written.
//!
//! So a name is needed once and then never again: who removes a file takes it from nobody who brings the same bytes at that moment, and
//! no lock is held while the bucket is asked, however long it takes. The database says which name a file has (`blob.place`). Names without a key
//! are those of a directory whose files were copied here.

use super::cache::Cache;
use super::s3::{Client, Content, Listed};
use super::{Object, Placed, plain_name};
use crate::config::BucketOptions;
use crate::database::{Connection, Database, DatabaseError, OptionalExtension as _, Result, params};
use crate::secret;
use backtrail_store::HttpAnswer;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file that no row names is removed when it is older: until then a row may be about to.
pub(super) const AGE: Duration = Duration::from_secs(2 * 3600);

/// How long after it was written a file may get its row. Far less than [`AGE`], so that clocks and commits may take their time.
const FRESH: Duration = Duration::from_secs(1800);

/// The file that says whose the bucket is.
const OWNER: &str = "backtrail";

pub(crate) struct Bucket {
    client: Client,
    cache: Cache,
}

impl Bucket {
    pub(super) fn new(options: BucketOptions, cache: PathBuf, most: u64) -> Self {
        Self { client: Client::new(options), cache: Cache::new(cache, most) }
    }

    /// Makes sure that the files are this database's: those of another one would be removed as files that nothing needs.
    pub(super) fn claim(&self, database: &Database) -> Result<()> {
        let new = secret::key().map_err(DatabaseError::Thread)?;
        let own: String = database.write(move |connection| {
            let known =
                connection.query_row("SELECT id FROM bucket", params![], |row| row.get(0)).optional()?;
            match known {
                Some(id) => Ok(id),
                None => connection.execute("INSERT INTO bucket (id) VALUES (?1)", params![new]).map(|_| new),
            }
        })?;
        let read = |answer: HttpAnswer| answer.bytes(1024);
        let owner = match self.client.get(OWNER, read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let put =
                    self.client.put(OWNER, Content::Bytes(own.as_bytes()), &secret::digest(own.as_bytes()));
                // Where another server did the same at this moment, one of them sees it now.
                put.and_then(|()| self.client.get(OWNER, read)).map_err(DatabaseError::Thread)?
            }
            owner => owner.map_err(DatabaseError::Thread)?,
        };
        if owner == own.as_bytes() {
            return Ok(());
        }
        let why = "its files are those of another server: give each a prefix of its own";
        Err(DatabaseError::Thread(self.client.failure(why, true)))
    }

    /// Writes a file, unless the database says that it is there.
    pub(super) fn put(&self, database: &Database, bytes: &[u8]) -> io::Result<Object> {
        self.write(database, Object::of(bytes), Content::Bytes(bytes))
    }

    /// The same of bytes that are about to be read here, too.
    pub(super) fn put_to_read(&self, database: &Database, bytes: &[u8]) -> io::Result<Object> {
        let object = self.put(database, bytes)?;
        // It is a copy.
        let kept = self.cache.begin(&object.digest).and_then(|mut file| {
            file.write_all(bytes)?;
            file.finish()
        });
        if kept.is_ok() {
            self.cache.shrink();
        }
        Ok(object)
    }

    /// The same of a file, which is taken.
    pub(super) fn adopt(&self, database: &Database, file: &Path, object: &Object) -> io::Result<Object> {
        let object = match fs::metadata(file) {
            // It was taken before: an archive may have it twice.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && self.cache.find(&object.digest).is_some() =>
            {
                return self.write(database, object.clone(), Content::File(&self.cache.path(&object.digest)));
            }
            Err(error) => return Err(error),
            Ok(_) => self.write(database, object.clone(), Content::File(file))?,
        };
        self.cache.adopt(file, &object.digest);
        Ok(object)
    }

    fn write(&self, database: &Database, object: Object, content: Content<'_>) -> io::Result<Object> {
        if database.read(|connection| is_needed(connection, &object.digest)).map_err(io::Error::other)? {
            return Ok(object);
        }
        let name = format!("{}-{}", plain_name(&object.digest), secret::key()?);
        let written = Instant::now();
        self.client.put(&name, content, &object.digest)?;
        Ok(Object { placed: Some(Placed { name, written }), ..object })
    }

    /// Whether a file is there and stays, at the moment when its row is written.
    pub(super) fn has(connection: &Connection, object: &Object) -> Result<bool> {
        match &object.placed {
            Some(placed) => Ok(placed.written.elapsed() < FRESH),
            None => is_needed(connection, &object.digest),
        }
    }

    /// A file's bytes.
    pub(super) fn get(&self, name: &str, digest: &str, size: u64) -> io::Result<Vec<u8>> {
        self.client.get(name, |answer| {
            let mut bytes = Vec::new();
            receive(answer, digest, size, &mut bytes).map(|()| bytes)
        })
    }

    /// Where a file is on this machine, from now on.
    pub(super) fn local(&self, name: &str, digest: &str, size: u64) -> io::Result<PathBuf> {
        if let Some(path) = self.cache.find(digest) {
            return Ok(path);
        }
        let path = self.client.get(name, |answer| {
            let mut file = self.cache.begin(digest).map_err(|error| error.to_string())?;
            receive(answer, digest, size, &mut file)?;
            file.finish().map_err(|error| error.to_string())?;
            Ok(self.cache.path(digest))
        })?;
        self.cache.shrink();
        Ok(path)
    }

    /// Where a file is on this machine, if it is.
    pub(super) fn path(&self, digest: &str) -> PathBuf {
        self.cache.path(digest)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.client.delete(name)
    }

    /// Writes a file under its plain name, into a bucket that a copy is restored to.
    pub(super) fn restore(&self, digest: &str, bytes: &[u8]) -> io::Result<()> {
        self.client.put(&plain_name(digest), Content::Bytes(bytes), digest)
    }

    /// Looks at everything that is there: what of `needed` is not, and what nothing needs although it is old.
    pub(super) fn compare(&self, needed: &HashMap<String, Option<String>>) -> io::Result<Compared> {
        let names: HashMap<String, &String> =
            needed.iter().map(|(digest, place)| (name_of(digest, place.as_deref()), digest)).collect();
        let (mut there, mut others) = (HashSet::new(), Vec::new());
        let clock = self.client.list(|listed| {
            if names.contains_key(&listed.name) {
                there.insert(listed.name);
            } else if is_ours(&listed.name) {
                others.push(listed);
            }
        })?;
        let age = i64::try_from(AGE.as_secs()).unwrap_or(i64::MAX);
        let is_old = |listed: &Listed| listed.written < clock.saturating_sub(age);
        let missing = names.iter().filter(|(name, _)| !there.contains(*name));
        Ok(Compared {
            missing: missing.map(|(_, digest)| (*digest).clone()).collect(),
            others: others.into_iter().filter(is_old).map(|listed| listed.name).collect(),
        })
    }

    /// Removes old files that no row names.
    pub(super) fn sweep(&self, database: &Database) -> Result<()> {
        self.claim(database)?;
        let none = HashMap::new();
        let old = self.compare(&none).map_err(DatabaseError::Thread)?.others;
        // What got a row until now has it; what has none and is old gets none any more.
        let needed = database.read(super::digests)?;
        let needed: HashSet<String> =
            needed.iter().map(|(digest, place)| name_of(digest, place.as_deref())).collect();
        let mut unneeded = old.iter().filter(|name| !needed.contains(*name));
        unneeded.try_for_each(|name| self.remove(name)).map_err(DatabaseError::Thread)
    }
}

/// What a look at the whole bucket found.
pub(super) struct Compared {
    pub(super) missing: Vec<String>,
    pub(super) others: Vec<String>,
}

/// The name of a file in the bucket.
pub(super) fn name_of(digest: &str, place: Option<&str>) -> String {
    place.map_or_else(|| plain_name(digest), str::to_owned)
}

/// Whether a name is one that this server gives. Others are nobody's to remove.
fn is_ours(name: &str) -> bool {
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((first, rest)) = name.split_once('/') else { return false };
    let (digest, key) = rest.split_once('-').map_or((rest, None), |(digest, key)| (digest, Some(key)));
    digits(first, 2) && digits(digest, 62) && key.is_none_or(|key| digits(key, 32))
}

/// Whether a row needs a file of the bucket.
fn is_needed(connection: &Connection, digest: &str) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM blob WHERE digest = ?1 AND refs > 0 AND (packed IS NULL \
        OR EXISTS (SELECT 1 FROM symbol_file WHERE blob = ?1) OR EXISTS (SELECT 1 FROM symbol_table WHERE blob = ?1)))";
    connection.query_row(sql, params![digest], |row| row.get(0))
}

/// Copies a file that is this one, and whole.
fn receive(
    answer: HttpAnswer,
    digest: &str,
    size: u64,
    to: &mut dyn Write,
) -> std::result::Result<(), String> {
    let mut body = answer.body.take(size.saturating_add(1));
    let (mut hash, mut received, mut piece) = (Sha256::new(), 0_u64, vec![0; 256 << 10]);
    loop {
        let count = body.read(&mut piece).map_err(|error| format!("broke off a file: {error}"))?;
        let read = piece.get(..count).unwrap_or_default();
        if read.is_empty() {
            break;
        }
        hash.update(read);
        to.write_all(read).map_err(|error| format!("a file cannot be written here: {error}"))?;
        received = received.saturating_add(read.len() as u64);
    }
    let found = secret::hex(&hash.finalize());
    if received == size && found == digest {
        return Ok(());
    }
    Err(format!("sent another file than {digest}: {received} bytes in the place of {size}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_removed() {
        let digest = secret::digest(b"x");
        assert!(is_ours(&plain_name(&digest)));
        assert!(is_ours(&format!("{}-{}", plain_name(&digest), secret::key().unwrap())));
        let others = [OWNER, "", "ab/cd", "photos/2026/a.jpg", "ab/../cd"];
        assert!(!others.iter().any(|name| is_ours(name)));
        assert!(!is_ours(&format!("{}-x", plain_name(&digest))));
    }
}
