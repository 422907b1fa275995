//! Whose code is where in one image, and the form in which it is kept and handed from one process to another.

use backtrail_core::{AddrRange, Arch, Confidence, ImageId, Svma};
use backtrail_model::{Owner, OwnerKind};
use backtrail_sdk::{LinkMap, OwnedRange};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Says whose code is where in images, in the place of fingerprints and link maps that are read here: a server has it worked out once for
/// each build, by a process with limits.
pub trait OwnerFinder: fmt::Debug + Send + Sync {
    /// What is known of a build; `files` are what is there of it, the binary first. `None` where nothing is known, or not yet.
    fn owners(&self, id: ImageId, arch: Arch, files: &[&Path]) -> Option<Arc<ImageOwners>>;
}

/// Whose code is where in one image.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImageOwners {
    /// Ascending, none over another.
    ranges: Vec<(AddrRange<Svma>, Arc<Owner>)>,
    /// Which object file each piece of code came from, and who says so.
    pub(crate) files: Option<FileRanges>,
    /// The name of the link map that is that of this build.
    pub(crate) link_map: Option<String>,
    pub(crate) problems: Vec<String>,
}

impl ImageOwners {
    /// Adds ranges where there are none yet.
    pub(crate) fn add(&mut self, ranges: Vec<OwnedRange>) {
        let known = std::mem::take(&mut self.ranges);
        let mut last: Option<Arc<Owner>> = None;
        for owned in ranges {
            let at = known.partition_point(|(range, _)| range.end() <= owned.range.start());
            if known.get(at).is_some_and(|(range, _)| range.start() < owned.range.end()) {
                continue;
            }
            let owner = Owner {
                kind: OwnerKind::Sdk,
                // Which of them brought it is not told.
                name: Some(match owned.shared_by.is_empty() {
                    true => owned.owner,
                    false => owned.shared_by.join(" or "),
                }),
                version: owned.version,
                confidence: Some(owned.confidence),
                how: owned.how.into(),
                file: None,
            };
            let shared = last.filter(|last| **last == owner).unwrap_or_else(|| Arc::new(owner));
            self.ranges.push((owned.range, Arc::clone(&shared)));
            last = Some(shared);
        }
        self.ranges.extend(known);
        self.ranges.sort_by_key(|(range, _)| range.start());
    }

    /// Whose the code at an address is; of unknown kind where only the object file is known that it came from.
    pub(crate) fn at(&self, address: Svma) -> Option<Arc<Owner>> {
        let owner = in_range(&self.ranges, address);
        let file = self.files.as_ref().and_then(|files| Some((files.at(address)?, files.how)));
        match (owner, file) {
            (owner, None) => owner.cloned(),
            (Some(owner), Some((file, _))) => {
                Some(Arc::new(Owner { file: Some(file.to_owned()), ..(**owner).clone() }))
            }
            (None, Some((file, how))) => {
                Some(Arc::new(Owner { how: how.into(), file: Some(file.to_owned()), ..Owner::default() }))
            }
        }
    }
}

/// What of a list of ranges, ascending and none over another, lies at an address.
fn in_range<T>(ranges: &[(AddrRange<Svma>, T)], address: Svma) -> Option<&T> {
    let after = ranges.partition_point(|(range, _)| range.start() <= address);
    let before = after.checked_sub(1).and_then(|at| ranges.get(at));
    before.filter(|(range, _)| range.contains(address)).map(|(_, what)| what)
}

/// Which object file the code of each range came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileRanges {
    names: Vec<String>,
    /// With the numbers of the names.
    ranges: Vec<(AddrRange<Svma>, u32)>,
    /// Who says so.
    how: &'static str,
}

impl FileRanges {
    /// What a map says, without what it is made of: a large app's has millions of pieces.
    pub(crate) fn of(map: &LinkMap, how: &'static str) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let ranges = map.file_ranges().into_iter().map(|(range, file)| {
            let number = *numbers.entry(file).or_insert_with(|| {
                names.push(file.to_owned());
                u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
            });
            (range, number)
        });
        let ranges = ranges.collect();
        Self { names, ranges, how }
    }

    fn at(&self, address: Svma) -> Option<&str> {
        let number = usize::try_from(*in_range(&self.ranges, address)?).ok()?;
        self.names.get(number).map(String::as_str)
    }
}

/// The beginning of what is kept; its last digit rises with the form.
const MAGIC: &[u8] = b"BTOWN1";

/// Who may say from which file code came.
const HOW: [&str; 2] = ["link map", "debug map"];

const CONFIDENCES: [Confidence; 3] = [Confidence::Likely, Confidence::Strong, Confidence::Certain];

impl ImageOwners {
    /// The name of the link map that is that of this build, if one was.
    pub fn link_map(&self) -> Option<&str> {
        self.link_map.as_deref()
    }

    /// What could not be used, one sentence each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// About how many bytes of memory it takes.
    pub fn memory(&self) -> usize {
        let entry = size_of::<(AddrRange<Svma>, Arc<Owner>)>();
        let files = self.files.as_ref().map_or(0, |files| {
            files.ranges.len() * entry + files.names.iter().map(|name| name.len() + entry).sum::<usize>()
        });
        self.ranges.len() * (entry + size_of::<Owner>()) + files + size_of::<Self>()
    }

    /// Everything as bytes, for [`from_bytes`](Self::from_bytes) of the same program.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        // An owner stands once, wherever one range follows another of the same.
        let mut owners: Vec<&Arc<Owner>> = Vec::new();
        let mut numbered = Vec::new();
        for (range, owner) in &self.ranges {
            if owners.last().is_none_or(|last| !Arc::ptr_eq(last, owner)) {
                owners.push(owner);
            }
            numbered.push((*range, owners.len() - 1));
        }
        out.number(owners.len());
        for owner in owners {
            out.optional(owner.name.as_deref());
            out.optional(owner.version.as_deref());
            out.number(
                CONFIDENCES.iter().position(|one| Some(*one) == owner.confidence).map_or(0, |at| at + 1),
            );
            out.text(&owner.how);
        }
        out.ranges(numbered.into_iter());
        out.number(usize::from(self.files.is_some()));
        if let Some(files) = &self.files {
            out.number(HOW.iter().position(|how| *how == files.how).unwrap_or_default());
            out.texts(&files.names);
            out.ranges(files.ranges.iter().map(|(range, number)| (*range, *number as usize)));
        }
        out.optional(self.link_map.as_deref());
        out.texts(&self.problems);
        let hash = blake3::hash(&out.0);
        out.0.extend_from_slice(hash.as_bytes());
        out.0
    }

    /// What [`to_bytes`](Self::to_bytes) wrote, if every byte is as it was written.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (content, hash) = bytes.split_last_chunk::<32>()?;
        if blake3::hash(content) != *hash {
            return None;
        }
        let mut from = Reader(content.strip_prefix(MAGIC)?);
        let mut owners = Vec::new();
        for _ in 0..from.count(4)? {
            let (name, version) = (from.optional()?, from.optional()?);
            let confidence = match from.number()? {
                0 => None,
                number => Some(*CONFIDENCES.get(usize::try_from(number).ok()? - 1)?),
            };
            let how = from.text()?.into();
            owners.push(Arc::new(Owner { kind: OwnerKind::Sdk, name, version, confidence, how, file: None }));
        }
        let owner = |number: u64| owners.get(usize::try_from(number).ok()?).cloned();
        let ranges = from.ranges(owner)?;
        let files = match from.number()? {
            0 => None,
            _ => {
                let how = *HOW.get(usize::try_from(from.number()?).ok()?)?;
                let names = from.texts()?;
                let ranges = from.ranges(|number| u32::try_from(number).ok())?;
                Some(FileRanges { names, ranges, how })
            }
        };
        let (link_map, problems) = (from.optional()?, from.texts()?);
        from.0.is_empty().then_some(Self { ranges, files, link_map, problems })
    }
}

/// Writes numbers of eight bytes, little-endian, and texts behind their lengths.
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: usize) {
        self.long(number as u64);
    }

    fn long(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn optional(&mut self, text: Option<&str>) {
        self.number(usize::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    fn texts(&mut self, texts: &[String]) {
        self.number(texts.len());
        texts.iter().for_each(|text| self.text(text));
    }

    fn ranges(&mut self, ranges: impl ExactSizeIterator<Item = (AddrRange<Svma>, usize)>) {
        self.number(ranges.len());
        for (range, number) in ranges {
            self.long(range.start().get());
            self.long(range.end().get());
            self.number(number);
        }
    }
}

/// Reads what [`Writer`] wrote.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    /// How many things of at least so many numbers follow: no more than there are bytes for.
    fn count(&mut self, numbers: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len() / (numbers * 8)).then_some(count)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn optional(&mut self) -> Option<Option<String>> {
        let is_there = self.number()? != 0;
        let text = self.text()?;
        Some(is_there.then_some(text))
    }

    fn texts(&mut self) -> Option<Vec<String>> {
        let count = self.count(1)?;
        (0..count).map(|_| self.text()).collect()
    }

    fn ranges<T>(&mut self, what: impl Fn(u64) -> Option<T>) -> Option<Vec<(AddrRange<Svma>, T)>> {
        let count = self.count(3)?;
        let mut range = || {
            let (start, end) = (Svma::new(self.number()?), Svma::new(self.number()?));
            Some((AddrRange::new(start, end), what(self.number()?)?))
        };
        (0..count).map(|_| range()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, owner: &str, version: Option<&str>) -> OwnedRange {
        let range = AddrRange::new(Svma::new(start), Svma::new(end));
        OwnedRange::new(range, owner.to_owned(), version.map(str::to_owned), Confidence::Strong, "body")
    }

    #[test]
    fn what_is_kept_is_read_again_unless_a_byte_changed() {
        let mut owners = ImageOwners::default();
        owners.add(vec![range(16, 32, "Foo\t", Some("2.1")), range(48, 64, "Bär Kit", None)]);
        let names = vec!["lib.a(a.o)".to_owned(), "b.o".to_owned()];
        let at = |start, end| AddrRange::new(Svma::new(start), Svma::new(end));
        let ranges = vec![(at(0, 20), 1), (at(20, 64), 0)];
        owners.files = Some(FileRanges { names, ranges, how: "link map" });
        (owners.link_map, owners.problems) = (Some("a.map".to_owned()), vec!["so".to_owned()]);
        for owners in [ImageOwners::default(), owners] {
            let bytes = owners.to_bytes();
            assert_eq!(ImageOwners::from_bytes(&bytes), Some(owners));
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert_eq!(ImageOwners::from_bytes(&changed), None, "byte {at}");
                assert_eq!(ImageOwners::from_bytes(&bytes[..at]), None, "cut at {at}");
            }
        }
    }

    #[test]
    fn the_first_to_say_something_of_an_address_has_the_say() {
        let mut owners = ImageOwners::default();
        owners.add(vec![range(16, 32, "A", None)]);
        owners.add(vec![range(8, 16, "B", None), range(24, 40, "B", None), range(40, 48, "B", None)]);
        let name = |at| owners.at(Svma::new(at)).and_then(|owner| owner.name.clone());
        let named = |name: &str| Some(name.to_owned());
        assert_eq!([name(7), name(8), name(16), name(31)], [None, named("B"), named("A"), named("A")]);
        assert_eq!([name(32), name(39), name(40), name(48)], [None, None, named("B"), None]);
        let mut shared = range(64, 80, backtrail_sdk::SHARED, None);
        shared.shared_by = vec!["A".to_owned(), "B".to_owned()];
        let mut owners = ImageOwners::default();
        owners.add(vec![shared]);
        let name = |at| owners.at(Svma::new(at)).and_then(|owner| owner.name.clone());
        assert_eq!(name(64), named("A or B"));
    }
}
