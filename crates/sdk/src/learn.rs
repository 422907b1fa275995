//! From a static library to its fingerprint.

mod literals;
mod member;
mod names;

use std::collections::BTreeMap;

use backtrail_core::Arch;
use backtrail_object::{Format, Kind, Limits, slices};

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::{Fingerprint, Slice};
pub(crate) use literals::{Content, ElfImage, MachMemory, Memory, literal};
use member::Member;
pub(crate) use member::body;

/// What `learn` is told besides the library.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LearnOptions {
    /// The library's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Bounds on what one file may cost.
    pub limits: Limits,
}

impl LearnOptions {
    /// With default limits.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), limits: Limits::default() }
    }
}

/// A fingerprint, and what could not be part of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Learned {
    /// What was learnt.
    pub fingerprint: Fingerprint,
    /// Members that were left out, with the reason.
    pub problems: Vec<String>,
}

/// Learns a static library from its files: archives, relocatable objects, fat files of either; one file or several that
/// belong together, as the slices of an `.xcframework`.
///
/// # Errors
/// Where no file has code for an architecture that is known.
pub fn learn(files: &[(&str, &[u8])], options: &LearnOptions) -> Result<Learned> {
    let mut problems = Vec::new();
    let mut by_arch: BTreeMap<(bool, Arch), Vec<Vec<Member>>> = BTreeMap::new();
    for (file, data) in files {
        let mut of_file: BTreeMap<(bool, Arch), Vec<Member>> = BTreeMap::new();
        for slice in slices(data, &options.limits)? {
            let name = slice.member.clone().unwrap_or_else(|| (*file).to_owned());
            let object = match slice.parse(&options.limits) {
                Ok(object) => object,
                Err(error) => {
                    problems.push(format!("{file}({name}): {error}"));
                    continue;
                }
            };
            if object.kind() != Kind::Relocatable {
                problems.push(format!("{file}({name}): expected the input of a linker, found linked code"));
                continue;
            }
            match Member::read(&object, &name) {
                Ok(Some(member)) => {
                    let key = (object.format() == Format::MachO, object.arch());
                    of_file.entry(key).or_default().push(member);
                }
                Ok(None) => {}
                Err(error) => problems.push(format!("{file}({name}): {error}")),
            }
        }
        for (key, members) in of_file {
            add(by_arch.entry(key).or_default(), members);
        }
    }
    let joined = by_arch.into_iter().flat_map(|((is_mach_o, arch), builds)| {
        builds.into_iter().map(move |members| names::join(arch, is_mach_o, &members))
    });
    let slices: Vec<Slice> = joined.filter(|slice| !slice.functions.is_empty()).collect();
    if slices.is_empty() {
        let mut detail = "expected a static library with code".to_owned();
        if let Some(problem) = problems.first() {
            detail = format!("{detail}; {problem}");
        }
        return Err(Error::new(ErrorKind::WrongInput, detail));
    }
    let fingerprint =
        Fingerprint { name: options.name.clone(), version: options.version.clone(), slices, has_calls: true };
    Ok(Learned { fingerprint, problems })
}

/// Adds a file's members to those of its architecture: to the build of the library that they belong to, or as another build. An
/// .xcframework has devices' and simulators' libraries side by side: the same object files with other code. As one library the half of
/// it would be another version in any app.
fn add(builds: &mut Vec<Vec<Member>>, members: Vec<Member>) {
    let is_other = |build: &[Member]| {
        let of_name = |member: &&Member| build.iter().any(|known| known.name == member.name);
        let is_there = |member: &Member| build.iter().any(|known| known.is_same(member));
        let common: Vec<_> = members.iter().filter(of_name).collect();
        // Parts of one library may have a name in common by chance.
        common.len() * 2 > members.len() && !common.into_iter().all(is_there)
    };
    let build = builds.iter_mut().find(|build| !is_other(build));
    match build {
        Some(build) => {
            for member in members {
                if !build.iter().any(|known| known.is_same(&member)) {
                    build.push(member);
                }
            }
        }
        None => builds.push(members),
    }
}
