//! What lies in a zip, without unpacking it.

use rayon::prelude::*;

use crate::data::FileData;
use crate::entry::Location;
use crate::error::{Error, ErrorKind, Fault};
use crate::scan::file::{MAGIC, Magic, text_or_nothing};
use crate::scan::{Findings, Scan, walk};
use crate::source::{Source, Window};
use crate::zip::{Directory, Inflater, Member, Method};

impl Scan<'_> {
    /// A zip; those that lie in it are left for later.
    pub(super) fn look_into_zip(&self, location: &Location, source: &Source) -> Findings {
        let directory = match Directory::read(source, self.limits) {
            Ok(directory) => directory,
            Err(fault) => return Findings::problem(fault.at(location)),
        };
        let mut all = Findings::default();
        all.problems.extend(directory.faults.into_iter().map(|fault| fault.at(location)));
        all.problems.extend(unreadable(&directory.members).map(|fault| fault.at(location)));
        let findings: Vec<_> = directory
            .members
            .into_par_iter()
            .filter(is_candidate)
            .map(|member| self.look_into_member(&location.member(member), source))
            .collect();
        all.extend(findings);
        all
    }

    /// The member of the zip `source` that `location` ends with.
    fn look_into_member(&self, location: &Location, source: &Source) -> Findings {
        let Some(member) = location.zip_members().last() else { return Findings::default() };
        let findings = match member.method() {
            Method::Stored => self.look_into_stored(location, member, source),
            Method::Deflated => self.look_into_deflated(location, member, source),
            Method::Encrypted | Method::Other(_) => Ok(Findings::default()),
        };
        let findings = findings.unwrap_or_else(|fault| Findings::problem(fault.at(location)));
        self.count(0);
        findings
    }

    fn look_into_stored(
        &self,
        location: &Location,
        member: &Member,
        source: &Source,
    ) -> Result<Findings, Fault> {
        let data = member.data(source)?;
        let window = Window::new(source, data.start, data.end - data.start);
        let mut head = [0; MAGIC];
        let head = head.get_mut(..head_len(member.compressed_size())).unwrap_or_default();
        window.fill(0, head)?;
        Ok(match Magic::of(head) {
            Magic::Object => self.identify(location, &window, || window.fault()),
            Magic::Zip => nested(location),
            kind @ (Magic::Table | Magic::Gsym | Magic::Breakpad) => {
                self.identify_other(kind, location, member.size(), |start| window.fill(0, start))
            }
            other => text_or_nothing(location, other, member.size(), head, |start| window.fill(0, start)),
        })
    }

    fn look_into_deflated(
        &self,
        location: &Location,
        member: &Member,
        source: &Source,
    ) -> Result<Findings, Fault> {
        let inflater = Inflater::new(source, member, &self.budget)?;
        let mut head = [0; MAGIC];
        let head = head.get_mut(..head_len(member.size())).unwrap_or_default();
        inflater.fill(0, head)?;
        Ok(match Magic::of(head) {
            Magic::Object => {
                member.check_size(self.limits.member_bytes, self.limits)?;
                self.identify(location, &inflater, || inflater.fault())
            }
            Magic::Zip => nested(location),
            kind @ (Magic::Table | Magic::Gsym | Magic::Breakpad) => {
                self.identify_other(kind, location, member.size(), |start| inflater.fill(0, start))
            }
            other => text_or_nothing(location, other, member.size(), head, |start| inflater.fill(0, start)),
        })
    }

    /// A zip within `depth` others.
    pub(super) fn look_into_nested(
        &self,
        location: &Location,
        depth: usize,
        open: &dyn Fn(&Location) -> Result<FileData, Error>,
    ) -> Findings {
        let data = self.check_nested(location, depth).and_then(|()| open(location));
        match data {
            Ok(data) => {
                let source = Source::Bytes(data);
                let findings = self.look_into_zip(location, &source);
                source.check().map_or_else(|fault| Findings::problem(fault.at(location)), |()| findings)
            }
            Err(error) => Findings::problem(error),
        }
    }

    /// Whether a zip within a zip may be read; one that is compressed has to be held in memory.
    fn check_nested(&self, location: &Location, depth: usize) -> Result<(), Error> {
        let limit = |what: String| Error::new(ErrorKind::Limit, location, what);
        if depth > self.limits.zip_depth {
            let what = format!("left unread: a zip within more than {} others", self.limits.zip_depth);
            return Err(limit(what));
        }
        let Some(member) = location.zip_members().last() else { return Ok(()) };
        if member.method() == Method::Deflated {
            let checked = member.check_size(self.limits.nested_zip_bytes, self.limits);
            checked.map_err(|fault| fault.at(location))?;
            if !self.budget.take(member.size()) {
                return Err(limit("left unread: the scan has inflated all it may".to_owned()));
            }
        }
        Ok(())
    }
}

fn nested(location: &Location) -> Findings {
    Findings { nested: vec![location.clone()], ..Findings::default() }
}

fn head_len(size: u64) -> usize {
    usize::try_from(size).map_or(MAGIC, |size| size.min(MAGIC))
}

/// Whether a member can be anything at all.
fn is_candidate(member: &Member) -> bool {
    !member.name().split('/').any(|part| walk::is_noise(part.as_bytes()))
}

/// One note for all encrypted members, and one for all that are packed in a way that is not read.
fn unreadable(members: &[Member]) -> impl Iterator<Item = Fault> {
    let encrypted = members.iter().filter(|member| member.method() == Method::Encrypted).count();
    let encrypted = (encrypted > 0).then(|| {
        let what = format!("{encrypted} members are encrypted and cannot be read");
        Fault::new(ErrorKind::Encrypted, what)
    });
    let mut others = members.iter().filter_map(|member| match member.method() {
        Method::Other(number) => Some(number),
        _ => None,
    });
    let others = others.next().map(|number| {
        let count = others.count() + 1;
        let what = format!("{count} members are packed by a method that is not read, such as {number}: only stored and deflated ones are");
        Fault::new(ErrorKind::NotRead, what)
    });
    encrypted.into_iter().chain(others)
}
