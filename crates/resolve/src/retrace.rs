//! Java's frames and exceptions by their names in the source.

use crate::mapping_file::MappingFile;
use crate::symbols::Symbols;
use backtrail_core::Function;
use backtrail_model::{Frame, Language, Report};
use backtrail_store::{FileData, Location};
use backtrail_symbolize::mapping::{MappedFrame, Mapping, MappingHead, Retraced, Retracer};
use std::sync::PoisonError;

/// What R8 puts in the place of the names of source files.
const MAP_ID: &str = "r8-map-id-";

impl Symbols {
    /// Names Java's frames and exceptions by the mapping file that belongs to the report, where one was found: the one of
    /// the id that the report states, else the only one that fits. What was refused, and why, is among the report's notes.
    pub fn retrace(&self, report: &mut Report) -> Option<MappingFile> {
        let wanted = Names::of(report)?;
        let found = self.mapping_of(&wanted, &mut report.notes)?;
        rename(report, &found);
        Some(found)
    }

    /// What a file says of itself, read once for all reports: it may have to be unpacked.
    fn mapping_head(&self, location: &Location) -> Option<MappingHead> {
        let mut known = self.mapping_heads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = known.get(location) {
            return head.clone();
        }
        let data = self.index_of_files().open_file(location).ok();
        let head = data.and_then(|data| MappingHead::read(data.get(..HEAD).unwrap_or(&data)));
        known.insert(location.clone(), head.clone());
        head
    }

    /// The file at that place, read once for all reports.
    fn mapping_file(&self, location: &Location) -> Option<MappingFile> {
        let name = location.to_string();
        let mut known = self.mappings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = known.iter().find(|file| file.name() == name) {
            return Some(file.clone());
        }
        let file = MappingFile::open(name, self.index_of_files().open_file(location).ok()?)?;
        known.push(file.clone());
        Some(file)
    }

    fn mapping_of(&self, wanted: &Names, notes: &mut Vec<String>) -> Option<MappingFile> {
        let mut fitting = Vec::new();
        for location in self.index_of_files().mappings() {
            let Some(head) = self.mapping_head(location) else { continue };
            if let Some(id) = &wanted.id {
                if head.is(id) {
                    return self.mapping_file(location);
                }
                let other = head.id.or(head.hash).unwrap_or_else(|| "none".to_owned());
                notes.push(format!(
                    "{location}: refused: the report states map id {id}, the file has {other}"
                ));
                continue;
            }
            let Some(file) = self.mapping_file(location) else { continue };
            match wanted.fit(file.mapping()) {
                Ok(()) => fitting.push(file),
                Err(why) => notes.push(format!("{location}: refused: {why}")),
            }
        }
        match fitting.len() {
            0 => None,
            1 => {
                let file = fitting.pop()?;
                let name = file.name();
                notes.push(format!(
                    "names are those of {name}; the report states no map id, so nothing proves that it is of this build"
                ));
                Some(file)
            }
            _ => {
                let names: Vec<_> = fitting.iter().map(MappingFile::name).collect();
                notes.push(format!(
                    "several mapping files fit, and the report states no map id: {}; none was used, name one",
                    names.join(", ")
                ));
                None
            }
        }
    }
}

/// Bytes of the head of a mapping file.
const HEAD: usize = 16 << 10;

/// What a report has to be named.
struct Names {
    id: Option<String>,
    /// Class, method, file, line of frames.
    frames: Vec<(String, String, String, Option<u32>)>,
    exceptions: Vec<String>,
}

/// Frames that are looked at to tell whether a mapping fits.
const MAX_LOOKED_AT: usize = 10_000;

impl Names {
    /// `None` where the report has no frame of Java.
    fn of(report: &mut Report) -> Option<Self> {
        let exceptions = report.exception.iter().filter_map(|exception| exception.kind.clone()).collect();
        let mut names = Self { id: None, frames: Vec::new(), exceptions };
        for process in report.all_processes_mut() {
            for frame in process.frames_mut().filter(|frame| frame.language == Some(Language::Java)) {
                let Some((class, method, file, line)) = parts(frame) else { continue };
                if let Some(id) = file.strip_prefix(MAP_ID) {
                    names.id.get_or_insert_with(|| id.to_owned());
                }
                if names.frames.len() < MAX_LOOKED_AT {
                    names.frames.push((class.to_owned(), method.to_owned(), file.to_owned(), line));
                }
            }
        }
        (!names.frames.is_empty()).then_some(names)
    }

    /// Whether a mapping may be of this build: it has the report's classes, and of most the methods.
    fn fit(&self, mapping: &Mapping<FileData>) -> Result<(), String> {
        let is_renamed = |class: &&str| mapping.class(class).is_some();
        let exceptions = self.exceptions.iter().map(String::as_str).filter(is_renamed).count();
        let (mut known, mut contradictions) = (0_usize, 0_usize);
        for (class, method, file, line) in &self.frames {
            let mut retracer = Retracer::new(mapping);
            let frames = match retracer.frame(class, method, file, *line) {
                Retraced::Unknown => continue,
                Retraced::Removed => Vec::new(),
                Retraced::Frames(frames) => frames,
            };
            known += 1;
            // A method, or a line of it, that a renamed class does not have.
            let is_renamed = mapping.class(class).is_some_and(|own| own != class);
            let is_bare = |frame: &MappedFrame| frame.signature == frame.method;
            contradictions += usize::from(is_renamed && frames.iter().flatten().any(is_bare));
        }
        if known == 0 && exceptions == 0 {
            return Err("it has no class of the report".to_owned());
        }
        if contradictions * 2 > known {
            return Err(format!(
                "it is of another build: of {known} frames whose class it has, {contradictions} have a method or line that it does not have"
            ));
        }
        Ok(())
    }
}

/// Class, method, file and line as the report states them.
fn parts(frame: &Frame) -> Option<(&str, &str, &str, Option<u32>)> {
    let reported = frame.reported.as_ref()?;
    let (class, method) = reported.name.rsplit_once('.')?;
    Some((class, method, reported.file.as_deref().unwrap_or_default(), reported.line))
}

fn rename(report: &mut Report, file: &MappingFile) {
    if let Some(exception) = &mut report.exception
        && let Some(own) = exception.kind.as_deref().and_then(|class| file.mapping().class(class))
    {
        exception.kind = Some(own.to_owned());
    }
    for process in report.all_processes_mut() {
        for thread in &mut process.threads {
            name_frames(&mut thread.frames, &mut Retracer::new(file.mapping()));
        }
        for backtrace in &mut process.backtraces {
            let mut retracer = Retracer::new(file.mapping());
            let head = backtrace.title.lines().next().unwrap_or_default();
            for class in head.split([' ', ':', '"']).filter(|word| !word.is_empty()) {
                if file.mapping().class(class).is_some()
                    || class.ends_with("Exception")
                    || class.ends_with("Error")
                {
                    let _ = retracer.exception(class);
                    break;
                }
            }
            backtrace.title = file.retrace(&backtrace.title);
            name_frames(&mut backtrace.frames, &mut retracer);
        }
    }
}

/// Names the frames of a stack, and takes out those that the compiler made.
fn name_frames(frames: &mut Vec<Frame>, retracer: &mut Retracer<'_, FileData>) {
    let mut removed = Vec::new();
    for (position, frame) in frames.iter_mut().enumerate() {
        if frame.language != Some(Language::Java) {
            continue;
        }
        let Some((class, method, file, line)) = parts(frame) else { continue };
        match retracer.frame(class, method, file, line) {
            Retraced::Unknown => {}
            Retraced::Removed => removed.push(position),
            Retraced::Frames(candidates) => {
                let mut chains = candidates.into_iter().map(functions);
                frame.functions = chains.next().unwrap_or_default();
                frame.alternatives = chains.filter(|chain| *chain != frame.functions).collect();
            }
        }
    }
    let mut position = 0;
    frames.retain(|_| {
        position += 1;
        removed.binary_search(&(position - 1)).is_err()
    });
}

/// An inline chain in the model's words.
fn functions(chain: Vec<MappedFrame>) -> Vec<Function> {
    let last = chain.len().saturating_sub(1);
    let function = |(position, frame): (usize, MappedFrame)| Function {
        name: format!("{}.{}", frame.class, frame.method),
        linkage_name: Some(frame.signature).filter(|signature| *signature != frame.method),
        file: Some(frame.file),
        line: frame.line,
        column: None,
        inlined: position < last,
    };
    chain.into_iter().enumerate().map(function).collect()
}
