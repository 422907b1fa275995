//! From the bytes of a report to everything that can be said about it.

use crate::{Stacks, ips};
use backtrail_diagnose::{
    Attribution, Begins, Explanation, Group, Rules, add_how_to_get, add_owners, add_register_frames,
    attribute, explain, group_and_begins, keep_fault, settle_register_frames,
};
use backtrail_model::{Process, Report};
use backtrail_report::{Document, Error, Limits, emit};
use backtrail_resolve::{MappingFile, Symbols};
use backtrail_stacks::{StackOptions, StacksError};
use std::fmt;

use crate::stacks::circumstances;

/// A report, read, symbolicated, explained and attributed.
#[derive(Debug)]
pub struct Analysis {
    /// The report, with names filled in where symbols were found.
    pub report: Report,
    /// What happened and why.
    pub explanation: Explanation,
    /// Whose code it was.
    pub attribution: Attribution,
    /// What puts it into a group with others of the same bug; `None` where nothing tells.
    pub group: Option<Group>,
    /// What of its bug shows where a stack is cut.
    pub begins: Begins,
    /// Where Java's names were found.
    pub(crate) mapping: Option<MappingFile>,
}

/// Why an input could not be analysed.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnalysisError {
    /// It is no report, or one of a kind that is not read.
    Report(Error),
    /// It is a core or a minidump, and cannot be read.
    Capture(StacksError),
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Report(error) => error.fmt(f),
            Self::Capture(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AnalysisError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Report(error) => error.source(),
            Self::Capture(error) => error.source(),
        }
    }
}

impl Analysis {
    /// Reads `input`, finds names in `symbols`, explains and attributes. The input is one report, see
    /// [`documents`](crate::documents) for what may be several; or an ELF core or a minidump, whose threads are walked first.
    ///
    /// Missing or broken symbols are no error: the frames say so. The error is the report's own, when not even a
    /// part of it could be read.
    ///
    /// # Errors
    /// Where `input` is no report, or one of a kind that is not read.
    pub fn new(input: &[u8], symbols: &Symbols, limits: &Limits) -> Result<Self, AnalysisError> {
        Self::with_rules(&input.into(), symbols, &Rules::default(), limits)
    }

    /// The same, for what [`documents`](crate::documents) found, and where users say whose code is whose.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_rules(
        input: &Document<'_>,
        symbols: &Symbols,
        rules: &Rules,
        limits: &Limits,
    ) -> Result<Self, AnalysisError> {
        let (mut report, mapping) = named(input, symbols, limits, Scope::All)?;
        if !report.source.is_capture() {
            let circumstances = circumstances(&report, symbols);
            add_how_to_get(&mut report, circumstances);
        }
        add_owners(&mut report, rules);
        let (group, begins) = group_and_begins(&report);
        Ok(Self::of(report, (group, begins), mapping))
    }

    fn of(report: Report, (group, begins): (Option<Group>, Begins), mapping: Option<MappingFile>) -> Self {
        let explanation = explain(&report);
        let attribution = attribute(&report, &explanation);
        Self { report, explanation, attribution, group, begins, mapping }
    }

    /// The report in the layout of Apple's crashes (`.ips`, JSON), for tools that read nothing else. Build ids, which are longer than
    /// Apple's UUIDs, are beside them (`buildId`).
    pub fn ips(&self) -> String {
        ips::ips(&self.report)
    }

    /// The original report with its frames filled in and every other byte as it was.
    pub fn filled_in(&self, input: &[u8]) -> Vec<u8> {
        let filled = emit(input, &self.report);
        match (&self.mapping, String::from_utf8(filled)) {
            (Some(mapping), Ok(text)) => mapping.retrace(&text).into_bytes(),
            (_, Ok(text)) => text.into_bytes(),
            // What is no text has no line of Java.
            (_, Err(bytes)) => bytes.into_bytes(),
        }
    }

    /// Whether a frame stayed without a name.
    pub fn is_incomplete(&self) -> bool {
        let mut processes = std::iter::once(&self.report.process).chain(&self.report.processes);
        processes.any(Process::is_incomplete)
    }
}

/// Which stacks of a report get names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All.
    All,
    /// Those that tell what happened; others are dropped.
    Fault,
}

/// A report with names.
fn named(
    input: &Document<'_>,
    symbols: &Symbols,
    limits: &Limits,
    scope: Scope,
) -> Result<(Report, Option<MappingFile>), AnalysisError> {
    let captured = Stacks::of_bytes(&input.bytes, symbols, &StackOptions::default());
    if let Some(stacks) = captured.map_err(AnalysisError::Capture)? {
        return Ok((stacks.report, None));
    }
    let mut report = input.parse(limits).map_err(AnalysisError::Report)?;
    if scope == Scope::Fault {
        keep_fault(&mut report);
    }
    add_register_frames(&mut report);
    for process in report.all_processes_mut() {
        symbols.symbolize(process, false);
    }
    let mapping = symbols.retrace(&mut report);
    for frame in settle_register_frames(&mut report) {
        // It is no frame of the stack any more, so it wants no name.
        let image = frame.image.and_then(|position| report.process.images.get_mut(position));
        if let Some(image) = image.filter(|_| frame.is_unnamed()) {
            image.symbols.forget_unnamed();
        }
    }
    Ok((report, mapping))
}

/// A report with the names that grouping wants: less work than an [`Analysis`], for those who have very many.
#[derive(Clone, Debug)]
pub struct Grouped {
    /// The report; stacks that do not tell what happened are left out.
    pub report: Report,
    /// What puts it into a group; `None` where nothing tells.
    pub group: Option<Group>,
    /// What of its bug shows where a stack is cut.
    pub begins: Begins,
}

impl Grouped {
    /// Reads `input`, finds names in `symbols` and puts it into a group.
    ///
    /// # Errors
    /// As [`Analysis::new`].
    pub fn new(input: &[u8], symbols: &Symbols, limits: &Limits) -> Result<Self, AnalysisError> {
        Self::with_rules(&input.into(), symbols, &Rules::default(), limits)
    }

    /// The same, for what [`documents`](crate::documents) found, and where users say whose code is whose.
    ///
    /// # Errors
    /// As [`Analysis::new`].
    pub fn with_rules(
        input: &Document<'_>,
        symbols: &Symbols,
        rules: &Rules,
        limits: &Limits,
    ) -> Result<Self, AnalysisError> {
        let (mut report, _) = named(input, symbols, limits, Scope::Fault)?;
        add_owners(&mut report, rules);
        let (group, begins) = group_and_begins(&report);
        Ok(Self { report, group, begins })
    }

    /// What happened, where, and whose code it was. Where other threads tell more, [`Analysis`] says it.
    pub fn analysis(self) -> Analysis {
        Analysis::of(self.report, (self.group, self.begins), None)
    }
}
