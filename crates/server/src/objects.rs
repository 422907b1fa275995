//! Files by their content, named by SHA-256, written once and never changed: `objects/ab/cdef…`; small ones of reports are
//! packed in the database instead, where one commit writes many.

use crate::database::{Connection, Database, DatabaseError, OptionalExtension as _, Result, params};
use crate::secret;
use backtrail_store::NewFile;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The directory of files.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    directory: PathBuf,
}

/// A file of [`Objects`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    /// The SHA-256 of its bytes.
    pub(crate) digest: String,
    /// How many bytes it has.
    pub(crate) size: u64,
    /// The packed bytes of a small one, for the database; else it is in the directory.
    pub(crate) packed: Option<Vec<u8>>,
}

/// The largest file that may be packed, and the most bytes that a packed one has.
const MAX_PACKED: (usize, usize) = (1 << 20, 64 << 10);

impl Objects {
    /// Uses the directory, and makes it and the 256 below it: later ones need no directory of their own to be made durable.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        for byte in 0..=u8::MAX {
            fs::create_dir_all(directory.join(format!("{byte:02x}")))?;
        }
        fs::File::open(directory)?.sync_all()?;
        Ok(Self::at(directory))
    }

    /// The same without making anything.
    pub(crate) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Packs a small file, and leaves it to the database to keep; writes a larger one as [`Self::put`] does.
    pub(crate) fn keep(&self, bytes: &[u8]) -> io::Result<Object> {
        let (most, most_packed) = MAX_PACKED;
        if bytes.len() <= most {
            let packed = pack(bytes)?;
            if packed.len() <= most_packed {
                return Ok(Object { packed: Some(packed), ..Object::of(bytes) });
            }
        }
        self.put(bytes)
    }

    /// Writes a file, unless it is there. When this returns it is on disk.
    pub(crate) fn put(&self, bytes: &[u8]) -> io::Result<Object> {
        let object = Object::of(bytes);
        let path = self.path(&object.digest);
        // A file has its name only when it is whole and on disk.
        if self.has(&object) {
            // Who is writing it at this moment may not have come to that.
            fs::File::open(path.parent().unwrap_or(&self.directory))?.sync_all()?;
            return Ok(object);
        }
        let mut file = NewFile::create(&path)?;
        file.write_all(bytes)?;
        file.finish()?;
        Ok(object)
    }

    /// Takes a file that is on disk, whole, and has these bytes, unless it is there.
    pub(crate) fn adopt(&self, file: &Path, object: &Object) -> io::Result<Object> {
        let path = self.path(&object.digest);
        if !self.has(object) {
            match fs::rename(file, &path) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(file, &path)?,
                renamed => renamed?,
            }
        }
        fs::File::open(path.parent().unwrap_or(&self.directory))?.sync_all()?;
        Ok(object.clone())
    }

    /// Whether a file is there, whole, or comes along with its row.
    pub(crate) fn has(&self, object: &Object) -> bool {
        object.packed.is_some()
            || fs::metadata(self.path(&object.digest)).is_ok_and(|metadata| metadata.len() == object.size)
    }

    /// A file's bytes, wherever they are.
    pub(crate) fn get(&self, database: &Database, digest: &str) -> io::Result<Vec<u8>> {
        let packed = database.read(|connection| packed(connection, digest));
        self.unpacked(packed, digest)
    }

    /// The same by a connection.
    pub(crate) fn read(&self, connection: &Connection, digest: &str) -> io::Result<Vec<u8>> {
        self.unpacked(packed(connection, digest), digest)
    }

    fn unpacked(&self, packed: Result<Option<(Vec<u8>, u64)>>, digest: &str) -> io::Result<Vec<u8>> {
        match packed.map_err(io::Error::other)? {
            Some((packed, size)) => unpack(&packed, size),
            None => fs::read(self.path(digest)),
        }
    }

    /// Where a file is.
    pub(crate) fn path(&self, digest: &str) -> PathBuf {
        // Digests are our own; what is none has no file.
        let (first, rest) = digest.split_at_checked(2).unwrap_or(("00", "none"));
        self.directory.join(first).join(rest)
    }

    /// Removes files that nothing needs: those of requests that a crash cut off between the file and its row.
    pub(crate) fn sweep(&self, database: &Database) -> Result<()> {
        let others = self.others(&database.read(digests)?).map_err(DatabaseError::Thread)?;
        if others.is_empty() {
            return Ok(());
        }
        // Another replica may need one by now, or begin to: whoever writes has the word.
        database.write(move |connection| {
            let needed = digests(connection)?;
            let mut unneeded = others.iter().filter(|(digest, _)| !needed.contains(digest));
            unneeded.try_for_each(|(_, path)| remove(path)).map_err(DatabaseError::Thread)
        })
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, digest: &str) -> io::Result<()> {
        remove(&self.path(digest))
    }

    /// Files that nothing needs, by their digests.
    pub(crate) fn others(&self, needed: &HashSet<String>) -> io::Result<Vec<(String, PathBuf)>> {
        let mut others = Vec::new();
        for directory in fs::read_dir(&self.directory)? {
            let directory = directory?;
            for file in fs::read_dir(directory.path())? {
                let file = file?;
                let digest = [directory.file_name(), file.file_name()];
                let digest: String = digest.iter().map(|part| part.to_string_lossy()).collect();
                if !needed.contains(&digest) {
                    others.push((digest, file.path()));
                }
            }
        }
        Ok(others)
    }
}

impl Object {
    fn of(bytes: &[u8]) -> Self {
        Self { digest: secret::digest(bytes), size: bytes.len() as u64, packed: None }
    }
}

/// Copies a file to where it appears whole, and on disk, or not at all.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = NewFile::create(to)?;
    io::copy(&mut fs::File::open(from)?, &mut copy)?;
    copy.finish()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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

/// The packed bytes of a file, and how many there are unpacked; `None` where the directory has it.
fn packed(connection: &Connection, digest: &str) -> Result<Option<(Vec<u8>, u64)>> {
    let row = connection
        .query_row(
            "SELECT packed.bytes, blob.size FROM blob JOIN packed ON packed.id = blob.packed WHERE \
         blob.digest = ?1",
            params![digest],
            |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)),
        )
        .optional()?;
    Ok(row.map(|(bytes, size)| (bytes, u64::try_from(size).unwrap_or_default())))
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

/// The files that must be in the directory.
pub(crate) fn digests(connection: &Connection) -> Result<HashSet<String>> {
    let digests = connection.query_map(
        "SELECT digest FROM blob WHERE refs > 0 \
         AND (packed IS NULL OR digest IN (SELECT blob FROM symbol_file UNION SELECT blob FROM symbol_table))",
        params![],
        |row| row.get(0),
    )?;
    Ok(digests.into_iter().collect())
}

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
            let objects = Objects::open(&directory.join(format!("objects-{number}"))).unwrap();
            (objects, Database::open(source).unwrap())
        };
        sources(directory).into_iter().zip(0..).map(open).collect()
    }

    #[test]
    fn equal_files_are_one() {
        let directory = TempDir::new("server-objects");
        for (objects, database) in open(&directory) {
            let get = |object: &Object| objects.get(&database, &object.digest);
            let one = objects.put(b"one").unwrap();
            assert_eq!(objects.put(b"one").unwrap(), one);
            let two = objects.put(b"two").unwrap();
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
            let object = objects.put(b"whole").unwrap();
            fs::write(objects.path(&object.digest), b"who").unwrap();
            objects.put(b"whole").unwrap();
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
                let object = objects.keep(&bytes).unwrap();
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
                assert_eq!(database.read(digests).unwrap().contains(&object.digest), is_file);
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
