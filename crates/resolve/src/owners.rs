//! Whose code is where in an image: asked once for each binary, and kept.

use crate::cache::TableCache;
use crate::convert;
use crate::image_owners::{FileRanges, ImageOwners, OwnerFinder};
use backtrail_core::{AddrRange, Confidence, Svma};
use backtrail_model::{Image, Process};
use backtrail_sdk::{ErrorKind, Fingerprint, LinkMap, MapOptions, OwnedRange};
use backtrail_store::OpenFile;
use blake3::{Hash, Hasher};
use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What tells static libraries inside of images apart: their fingerprints, and linkers' maps of the very builds.
#[derive(Default)]
pub struct OwnerSources {
    fingerprints: Vec<Fingerprint>,
    link_maps: Vec<NamedMap>,
    hasher: Hasher,
    finder: Option<Arc<dyn OwnerFinder>>,
    skip: Option<fn(&Process, &Image) -> bool>,
}

struct NamedMap {
    name: String,
    map: LinkMap,
    is_used: AtomicBool,
}

impl OwnerSources {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fingerprint: the bytes of a `.btsdk` file.
    ///
    /// # Errors
    /// Where the bytes are none.
    pub fn add_fingerprint(&mut self, bytes: &[u8]) -> Result<(), backtrail_sdk::Error> {
        self.fingerprints.push(Fingerprint::from_bytes(bytes)?);
        self.hasher.update(blake3::hash(bytes).as_bytes());
        Ok(())
    }

    /// Adds a link map; `name` is what it is called for people. It counts for the image that it is the map of.
    ///
    /// # Errors
    /// Where the bytes are none.
    pub fn add_link_map(&mut self, name: &str, bytes: &[u8]) -> Result<(), backtrail_sdk::Error> {
        let map = LinkMap::parse(bytes)?;
        self.link_maps.push(NamedMap { name: name.to_owned(), map, is_used: AtomicBool::new(false) });
        Ok(())
    }

    /// Leaves out images that no static library of an app lies in, as the system's.
    #[must_use]
    pub fn skipping(self, skip: fn(&Process, &Image) -> bool) -> Self {
        Self { skip: Some(skip), ..self }
    }

    /// Has somebody else say whose code is where in images that state their identity.
    #[must_use]
    pub fn with_finder(self, finder: Arc<dyn OwnerFinder>) -> Self {
        Self { finder: Some(finder), ..self }
    }

    /// Who else says whose code is where.
    pub(crate) fn finder(&self) -> Option<&dyn OwnerFinder> {
        self.finder.as_deref()
    }

    /// Whether there is nothing to compare images with.
    pub(crate) fn is_empty(&self) -> bool {
        self.fingerprints.is_empty() && self.link_maps.is_empty() && self.finder.is_none()
    }

    /// Whether an image is looked at.
    pub(crate) fn wants(&self, process: &Process, image: &Image) -> bool {
        !self.skip.is_some_and(|skip| skip(process, image))
    }

    /// Link maps that were those of no image, one sentence each.
    pub(crate) fn problems(&self) -> impl Iterator<Item = String> {
        let unused = self.link_maps.iter().filter(|named| !named.is_used.load(Ordering::Relaxed));
        unused.map(|named| format!("{}: is the link map of no binary that was found", named.name))
    }

    /// Whose code is where in a binary. `debug_files` are of the same build.
    pub(crate) fn owners(
        &self,
        binary: &OpenFile,
        debug_files: &[Arc<OpenFile>],
        cache: Option<&TableCache>,
    ) -> ImageOwners {
        let Some(object) = binary.object() else { return ImageOwners::default() };
        let mut found = ImageOwners::default();
        for named in &self.link_maps {
            match backtrail_sdk::map(object, &self.fingerprints, &MapOptions::with_link_map(&named.map)) {
                Ok(owners) => {
                    named.is_used.store(true, Ordering::Relaxed);
                    found.add(owners.ranges);
                    found.files = Some(FileRanges::of(&named.map, "link map"));
                    found.link_map = Some(named.name.clone());
                    // It says all that there is to know.
                    return found;
                }
                Err(error) if error.kind() == ErrorKind::Mismatch => {}
                Err(error) => found.problems.push(format!("{}: {error}", binary.name())),
            }
        }
        if let Some(map) = LinkMap::of_debug_map(object) {
            if let Ok(owners) =
                backtrail_sdk::map(object, &self.fingerprints, &MapOptions::with_link_map(&map))
            {
                found.add(owners.ranges);
            }
            found.files = Some(FileRanges::of(&map, "debug map"));
        }
        if !self.fingerprints.is_empty() {
            let placed = self.placed(binary, debug_files, cache, &mut found.problems);
            found.add(placed);
        }
        found
    }

    /// What fingerprints find, kept where a cache is.
    fn placed(
        &self,
        binary: &OpenFile,
        debug_files: &[Arc<OpenFile>],
        cache: Option<&TableCache>,
        problems: &mut Vec<String>,
    ) -> Vec<OwnedRange> {
        let Some(object) = binary.object() else { return Vec::new() };
        let debug: Vec<_> = debug_files.iter().filter_map(|file| file.object()).collect();
        let options = MapOptions::with_debug_files(&debug);
        let map = |problems: &mut Vec<String>| match backtrail_sdk::map(object, &self.fingerprints, &options)
        {
            Ok(owners) => Some(owners.ranges),
            Err(error) => {
                problems.push(format!("{}: {error}", binary.name()));
                None
            }
        };
        let Some(cache) = cache else { return map(problems).unwrap_or_default() };
        let mut hasher = self.hasher.clone();
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        hasher.update(binary.arch().name().as_bytes());
        hasher.update(cache.content(binary.bytes()).as_bytes());
        for file in debug_files.iter().filter(|file| file.object().is_some()) {
            hasher.update(cache.content(file.bytes()).as_bytes());
        }
        let place = cache.owners_place(&hasher.finalize());
        if let Some(kept) = read(&place) {
            return kept;
        }
        let Some(ranges) = map(problems) else { return Vec::new() };
        // Without it the binary is compared again the next time.
        let _ = text(&ranges).map(|text| convert::write_whole(&place, text.as_bytes()));
        ranges
    }
}

impl fmt::Debug for OwnerSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fingerprints.iter().map(Fingerprint::name).collect();
        let maps: Vec<_> = self.link_maps.iter().map(|named| &named.name).collect();
        f.debug_struct("OwnerSources").field("fingerprints", &names).field("link_maps", &maps).finish()
    }
}

/// Ranges as they are kept: a line for each, and the hash of all lines. `None` where a name has what no line can.
fn text(ranges: &[OwnedRange]) -> Option<String> {
    let mut text = String::new();
    for owned in ranges {
        let version = owned.version.as_deref().unwrap_or_default();
        let names = [owned.owner.as_str(), version];
        let mut names = names.into_iter().chain(owned.shared_by.iter().map(String::as_str));
        if names.any(|name| name.contains(['\t', '\n', '\r'])) {
            return None;
        }
        let (start, end) = (owned.range.start().get(), owned.range.end().get());
        let (confidence, how) = (owned.confidence.as_str(), owned.how);
        let _ = write!(text, "{start:x}\t{end:x}\t{confidence}\t{how}\t{}\t{version}", owned.owner);
        for library in &owned.shared_by {
            let _ = write!(text, "\t{library}");
        }
        text.push('\n');
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let _ = writeln!(text, "{hash}");
    Some(text)
}

/// Ranges that were kept, if every byte is as it was written.
fn read(place: &Path) -> Option<Vec<OwnedRange>> {
    let text = fs::read_to_string(place).ok()?;
    let (lines, hash) =
        text.strip_suffix('\n')?.rsplit_once('\n').map_or(("", text.trim_end()), |parts| parts);
    let lines = text.get(..lines.len() + usize::from(!lines.is_empty()))?;
    (blake3::hash(lines.as_bytes()) == Hash::from_hex(hash).ok()?).then_some(())?;
    lines.lines().map(line).collect()
}

fn line(line: &str) -> Option<OwnedRange> {
    const HOW: [&str; 7] = ["name", "body", "call", "order", "present", "changed", "stamp"];
    let mut parts = line.split('\t');
    let mut address = || u64::from_str_radix(parts.next()?, 16).ok().map(Svma::new);
    let range = AddrRange::new(address()?, address()?);
    let confidence = parts.next()?;
    let all = [Confidence::Likely, Confidence::Strong, Confidence::Certain];
    let confidence = all.into_iter().find(|one| one.as_str() == confidence)?;
    let how = parts.next()?;
    let how = HOW.into_iter().find(|known| *known == how)?;
    let owner = parts.next()?.to_owned();
    let version = parts.next().filter(|version| !version.is_empty()).map(str::to_owned);
    let mut owned = OwnedRange::new(range, owner, version, confidence, how);
    owned.shared_by = parts.map(str::to_owned).collect();
    Some(owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    fn range(start: u64, end: u64, owner: &str, version: Option<&str>) -> OwnedRange {
        let range = AddrRange::new(Svma::new(start), Svma::new(end));
        OwnedRange::new(range, owner.to_owned(), version.map(str::to_owned), Confidence::Strong, "body")
    }

    #[test]
    fn kept_ranges_are_read_again_unless_a_byte_changed() {
        let directory = TempDir::new("owners");
        let mut shared = range(80, 96, backtrail_sdk::SHARED, None);
        shared.shared_by = vec!["Foo".to_owned(), "Bär Kit".to_owned()];
        let ranges = vec![range(16, 32, "Foo", Some("2.1")), range(48, 64, "Bär Kit", None), shared];
        for ranges in [Vec::new(), ranges] {
            let kept = text(&ranges).unwrap();
            assert_eq!(read(&directory.write("kept", &kept)).unwrap(), ranges);
            for at in 0..kept.len() {
                let mut changed = kept.clone().into_bytes();
                changed[at] ^= 1;
                assert_eq!(read(&directory.write("changed", &changed)), None, "byte {at}");
                assert_eq!(read(&directory.write("cut", &kept.as_bytes()[..at])), None, "cut at {at}");
            }
        }
        assert_eq!(text(&[range(0, 1, "a\tb", None)]), None);
    }
}
