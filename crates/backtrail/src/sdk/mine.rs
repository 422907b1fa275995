//! Builds that only crash reports tell of: their stacks, gathered from many reports, and the libraries in them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use backtrail_core::{Arch, FrameAddress, ImageId, Rva};
use backtrail_diagnose::is_system;
use backtrail_model::{Frame, Image, Process, Report};
use backtrail_sdk::{BuildStacks, CodeOffset, Fingerprint, Layout, Sighting, mine};

/// One frame of a report that lies in the build.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReportFrame {
    /// The position of its stack among the report's threads and backtraces.
    pub stack: usize,
    /// Whether it is that of the thread that the report blames.
    pub crashed: bool,
    /// Its number there.
    pub index: u32,
    /// Where it is.
    pub address: CodeOffset,
}

/// A report that has frames in the build.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BuildReport {
    /// What the report is called.
    pub name: String,
    /// Its frames in the build.
    pub frames: Vec<ReportFrame>,
}

/// One binary that reports have frames in.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Build {
    /// Its file's name.
    pub name: String,
    /// Its identity.
    pub id: ImageId,
    /// The app's version, as a report states it.
    pub version: Option<String>,
    /// The reports, as they were added.
    pub reports: Vec<BuildReport>,
    stacks: BuildStacks,
}

impl Build {
    /// The architecture.
    pub fn arch(&self) -> Arch {
        self.stacks.arch
    }

    /// The libraries that may be in it, the surest first; see [`Sighting::confidence`].
    pub fn libraries(&self, layouts: &[Layout], fingerprints: &[Fingerprint]) -> Vec<Sighting> {
        mine(&self.stacks, layouts, fingerprints)
    }
}

/// Builds, gathered from reports. Images without an identity are left out, and the system's.
#[derive(Clone, Default, Debug)]
pub struct Builds {
    builds: BTreeMap<(ImageId, Arch), Build>,
}

impl Builds {
    /// Takes in what one report says of the images of its processes.
    pub fn add(&mut self, name: &str, report: &Report) {
        for process in std::iter::once(&report.process).chain(&report.processes) {
            for (index, image) in process.images.iter().enumerate() {
                let (Some(id), Some(arch)) = (image.id, image.arch.or(process.arch)) else { continue };
                let (stacks, frames) = stacks(report, process, index, arch);
                if frames.is_empty() {
                    continue;
                }
                let build = self.builds.entry((id, arch)).or_insert_with(|| Build {
                    name: image.name.clone(),
                    id,
                    version: image.version.clone().or_else(|| process.version.clone()),
                    reports: Vec::new(),
                    stacks: BuildStacks::new(arch, matches!(id, ImageId::Uuid(_))),
                });
                build.stacks.size = build.stacks.size.max(size(image));
                build.stacks.stacks.extend(stacks);
                build.reports.push(BuildReport { name: name.to_owned(), frames });
            }
        }
    }

    /// Takes in what others gathered.
    pub fn join(&mut self, others: Self) {
        for (key, other) in others.builds {
            match self.builds.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(other);
                }
                Entry::Occupied(known) => {
                    let known = known.into_mut();
                    known.reports.extend(other.reports);
                    known.stacks.size = known.stacks.size.max(other.stacks.size);
                    known.stacks.stacks.extend(other.stacks.stacks);
                }
            }
        }
    }

    /// The builds, those with most reports first.
    pub fn into_builds(self) -> Vec<Build> {
        let mut builds: Vec<Build> = self.builds.into_values().collect();
        builds.sort_by_key(|build| std::cmp::Reverse(build.reports.len()));
        builds
    }
}

fn size(image: &Image) -> Option<u64> {
    image.end_address?.offset_from(image.load_address)
}

/// The stacks of one image, and its frames.
fn stacks(
    report: &Report,
    process: &Process,
    index: usize,
    arch: Arch,
) -> (Vec<Vec<Option<CodeOffset>>>, Vec<ReportFrame>) {
    let Some(image) = process.images.get(index) else { return Default::default() };
    let threads = process.threads.iter().map(|thread| (&thread.frames, thread.crashed));
    let backtraces = process.backtraces.iter().map(|backtrace| (&backtrace.frames, true));
    let (mut stacks, mut found) = (Vec::new(), Vec::new());
    for (number, (frames, crashed)) in threads.chain(backtraces).enumerate() {
        let rows = frames.iter().filter(|frame| !frame.inlined);
        let addresses: Vec<Option<CodeOffset>> = rows
            .clone()
            .map(|frame| {
                let is_here = frame.image == Some(index) && !is_system(report, frame);
                is_here.then(|| code_offset(frame, image, arch)).flatten()
            })
            .collect();
        let in_build = rows.zip(&addresses).filter_map(|(frame, address)| {
            Some(ReportFrame { stack: number, crashed, index: frame.index, address: (*address)? })
        });
        let before = found.len();
        found.extend(in_build);
        if found.len() > before {
            stacks.push(addresses);
        }
    }
    (stacks, found)
}

fn code_offset(frame: &Frame, image: &Image, arch: Arch) -> Option<CodeOffset> {
    let address = frame.address?;
    let offset = address.lookup(arch).offset_from(image.load_address)?;
    Some(match address {
        FrameAddress::Exact(_) => CodeOffset::Exact(Rva::new(offset)),
        // Looked up one byte earlier; here the place behind the call is meant.
        FrameAddress::Return(_) => CodeOffset::Return(Rva::new(offset.checked_add(1)?)),
    })
}
