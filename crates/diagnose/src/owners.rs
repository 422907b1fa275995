//! Gives every frame its owner.
//!
//! In the order of their weight: what the linker or a stamp said (those who looked addresses up wrote that down already), the
//! user's rules, code that was found again by a fingerprint, directories in which package managers keep others' sources, the
//! object file that the linker took the code from, and last the image or the class.

mod directory;
mod object_file;

use crate::names::{image_name, image_of};
use crate::rules::{Code, Rules};
use crate::suspect::{is_script, owner_of};
use backtrail_core::Confidence;
use backtrail_model::{Frame, Owner, OwnerKind, Report};
pub use object_file::owner as owner_of_object_file;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Says of every frame whose code it is; `rules` are the user's word.
pub fn add_owners(report: &mut Report, rules: &Rules) {
    own(report, rules);
    // Rules look at the process that a report is about: each of the others takes its place for a moment.
    for position in 0..report.processes.len() {
        let Some(other) = report.processes.get_mut(position) else { break };
        std::mem::swap(&mut report.process, other);
        own(report, rules);
        if let Some(other) = report.processes.get_mut(position) {
            std::mem::swap(&mut report.process, other);
        }
    }
}

fn own(report: &mut Report, rules: &Rules) {
    let process = &report.process;
    let threads = process.threads.iter().flat_map(|thread| &thread.frames);
    let backtraces = process.backtraces.iter().flat_map(|backtrace| &backtrace.frames);
    let nodes = process.trees.iter().flat_map(|tree| &tree.nodes).map(|node| &node.frame);
    let mut owners = Owners::new(report, rules);
    let found: Vec<_> = threads.chain(backtraces).chain(nodes).map(|frame| owners.of(frame)).collect();
    for (frame, owner) in report.process.frames_mut().zip(found) {
        frame.owner = Some(owner);
    }
}

struct Owners<'r> {
    report: &'r Report,
    rules: &'r Rules,
    team: Option<&'r str>,
    /// By position of the image.
    of_images: Vec<Option<Arc<Owner>>>,
    /// What object files and directories were found to be: most frames share a few.
    of_files: HashMap<String, Option<Arc<Owner>>>,
}

impl<'r> Owners<'r> {
    fn new(report: &'r Report, rules: &'r Rules) -> Self {
        let fields = report.fields.iter().chain(&report.process.fields);
        let team = fields
            .filter(|field| matches!(field.key.as_str(), "codeSigningTeamID" | "Team ID" | "teamIdentifier"))
            .map(|field| field.value.trim_matches('"'))
            .find(|team| !team.is_empty());
        let of_images = vec![None; report.process.images.len()];
        Self { report, rules, team, of_images, of_files: HashMap::new() }
    }

    fn of(&mut self, frame: &Frame) -> Arc<Owner> {
        let found = frame.owner.as_ref();
        if let Some(owner) = found.filter(|owner| owner.confidence == Some(Confidence::Certain)) {
            return Arc::clone(owner);
        }
        let of_image = self.of_image(frame);
        if let Some(owner) = self.by_rule(frame, &of_image) {
            return owner;
        }
        if let Some(owner) = found.filter(|owner| owner.kind != OwnerKind::Unknown) {
            return Arc::clone(owner);
        }
        if of_image.kind == OwnerKind::System {
            return of_image;
        }
        let sources = frame.functions.iter().filter_map(|function| function.file.as_deref());
        let reported = frame.reported.as_ref().and_then(|reported| reported.file.as_deref());
        let sources = sources.chain(reported.filter(|_| frame.functions.is_empty()));
        for source in sources {
            if let Some(owner) = self.of_file(source, directory::owner) {
                return owner;
            }
        }
        let object = found.and_then(|owner| owner.file.as_deref());
        let Some(object) = object else { return of_image };
        if let Some(owner) = self.of_file(object, object_file::owner) {
            return owner;
        }
        let is_own = of_image.kind == OwnerKind::App && object_file::is_apps_own(object);
        if !is_own {
            return of_image;
        }
        let own = |file: &str| {
            let (confidence, file) = (Some(Confidence::Strong), Some(file.to_owned()));
            Owner { confidence, how: "object file".into(), file, ..(*of_image).clone() }
        };
        let owner = Arc::new(own(object));
        self.of_files.insert(object.to_owned(), Some(Arc::clone(&owner)));
        owner
    }

    /// What a file's path says, asked once for each file.
    fn of_file(&mut self, path: &str, ask: fn(&str) -> Option<Owner>) -> Option<Arc<Owner>> {
        if let Some(known) = self.of_files.get(path) {
            return known.clone();
        }
        let owner = ask(path).map(Arc::new);
        self.of_files.insert(path.to_owned(), owner.clone());
        owner
    }

    fn of_image(&mut self, frame: &Frame) -> Arc<Owner> {
        // A class belongs to no file, and a sanitizer's own functions lie in the program's.
        let is_by_image = frame.language.is_none() && !self.report.source.is_runtimes();
        let position = frame.image.filter(|_| is_by_image);
        if let Some(Some(known)) = position.and_then(|position| self.of_images.get(position)) {
            return Arc::clone(known);
        }
        let owner = Arc::new(by_image(self.report, frame));
        if let Some(slot) = position.and_then(|position| self.of_images.get_mut(position)) {
            *slot = Some(Arc::clone(&owner));
        }
        owner
    }

    /// The first rule that fits. Of the functions at a frame the innermost counts for which there is one.
    fn by_rule(&self, frame: &Frame, of_image: &Owner) -> Option<Arc<Owner>> {
        if self.rules.owners.is_empty() {
            return None;
        }
        let object = frame.owner.as_ref().and_then(|owner| owner.file.as_deref());
        let image = frame.image.and_then(|position| self.report.process.images.get(position));
        let code = |symbol, source| Code {
            symbol,
            module: image_name(self.report, frame),
            paths: [source, object, image.and_then(|image| image.path.as_deref())],
            // Nobody but the system's maker signs its images.
            team: self.team.filter(|_| of_image.kind != OwnerKind::System),
        };
        let reported = frame.reported.as_ref().and_then(|reported| reported.file.as_deref());
        let functions =
            frame.functions.iter().map(|function| (Some(function.name.as_str()), function.file.as_deref()));
        let bare = (frame.names().next(), reported);
        let bare = std::iter::once(bare).filter(|_| frame.functions.is_empty());
        let found = functions.chain(bare).find_map(|(symbol, source)| {
            let code = code(symbol, source);
            self.rules.owners.iter().find_map(|rule| Some((rule, rule.fit(&code)?)))
        });
        let (rule, how) = found?;
        let name = rule.name.clone().or_else(|| match rule.kind {
            OwnerKind::App => self.report.process.name.clone(),
            _ => image_name(self.report, frame).map(str::to_owned),
        });
        Some(Arc::new(Owner {
            kind: rule.kind,
            name,
            version: rule.version.clone(),
            confidence: Some(Confidence::Strong),
            how: how.into(),
            file: object.map(Into::into),
        }))
    }
}

fn by_image(report: &Report, frame: &Frame) -> Owner {
    let ownership = owner_of(report, frame);
    let name = image_name(report, frame).map(str::to_owned);
    // A class belongs to no file; the app is named by its package.
    let name = match ownership.owner {
        OwnerKind::App if frame.language.is_some() && !is_script(report, frame) => {
            report.process.identifier.clone()
        }
        OwnerKind::App => name.or_else(|| report.process.name.clone()),
        _ => name,
    };
    // Reports print a bundle's version as "2.1 - 340", with its build behind it.
    let image =
        image_of(report, frame).filter(|_| ownership.owner == OwnerKind::Sdk && frame.language.is_none());
    let version = image.and_then(|image| image.version.as_deref()?.split(" - ").next()).map(str::to_owned);
    Owner {
        kind: ownership.owner,
        name,
        version,
        confidence: ownership.confidence,
        how: ownership.how.into(),
        file: None,
    }
}

/// The owner of a frame: what [`add_owners`] said, else what its image says.
pub(crate) fn of_frame<'f>(report: &Report, frame: &'f Frame) -> Cow<'f, Owner> {
    match &frame.owner {
        Some(owner) => Cow::Borrowed(owner),
        None => Cow::Owned(by_image(report, frame)),
    }
}
