//! From the bytes of a report to everything that can be said about it.

use crate::Symbols;
use crate::symbolicate::symbolicate;
use backtrail_core::{Bias, ImageId};
use backtrail_report::{
    Attribution, Error, Explanation, Frame, Limits, Report, add_register_frames, attribute, emit, explain,
    parse, settle_register_frames,
};

/// A report, read, symbolicated, explained and attributed.
#[derive(Debug)]
pub struct Analysis {
    /// The report, with names filled in where symbols were found.
    pub report: Report,
    /// What is known of each image's symbols; parallel to the report's images.
    pub images: Vec<ImageSymbols>,
    /// What happened and why.
    pub explanation: Explanation,
    /// Whose code it was.
    pub attribution: Attribution,
}

/// Where an image's symbols are, or why there are none.
#[derive(Clone, Debug, Default)]
pub struct ImageSymbols {
    /// The outcome.
    pub status: SymbolStatus,
    /// The files that answered, for people: paths, `zip!member` inside archives.
    pub files: Vec<String>,
    /// What was tried without success, for people: searched folders, near misses, unreadable files and why.
    pub tried: Vec<String>,
    /// Load address minus stated address; known once the file is.
    pub bias: Option<Bias>,
    /// How many frames of the report lie in this image and have no name.
    pub unnamed_frames: usize,
    /// Whether a file of the right identity was there and could not be read.
    pub unreadable: bool,
}

/// The outcome of looking for an image's symbols.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum SymbolStatus {
    /// No frame of the report needs them.
    #[default]
    NoneNeeded,
    /// Found, by identity.
    Found,
    /// No file of that identity or name; or one that could not be read (`tried` tells).
    Missing,
    /// Files of that name were found, of these other builds.
    IdMismatch(Vec<ImageId>),
}

impl SymbolStatus {
    /// The word that JSON uses.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NoneNeeded => "none-needed",
            Self::Found => "found",
            Self::Missing => "missing",
            Self::IdMismatch(_) => "id-mismatch",
        }
    }
}

impl Analysis {
    /// Reads `input`, finds names in `symbols`, explains and attributes.
    ///
    /// Missing or broken symbols are no error: the frames say so. The error is the report's own, when not even a
    /// part of it could be read.
    pub fn new(input: &[u8], symbols: &Symbols, limits: &Limits) -> Result<Self, Error> {
        let mut report = parse(input, limits)?;
        add_register_frames(&mut report);
        let mut images = symbolicate(&mut report, symbols);
        for frame in settle_register_frames(&mut report) {
            forget(&frame, &mut images);
        }
        let explanation = explain(&report);
        let attribution = attribute(&report);
        Ok(Self { report, images, explanation, attribution })
    }

    /// The original report with its frames filled in and every other byte as it was.
    pub fn filled_in(&self, input: &[u8]) -> Vec<u8> {
        emit(input, &self.report)
    }

    /// Whether a frame stayed without a name for want of symbols.
    pub fn is_incomplete(&self) -> bool {
        self.images
            .iter()
            .any(|image| !matches!(image.status, SymbolStatus::NoneNeeded | SymbolStatus::Found))
    }
}

/// Takes a frame out of its image's account.
fn forget(frame: &Frame, images: &mut [ImageSymbols]) {
    let image = frame.image.and_then(|position| images.get_mut(position));
    let Some(image) = image.filter(|_| frame.names().next().is_none()) else { return };
    image.unnamed_frames = image.unnamed_frames.saturating_sub(1);
    if image.unnamed_frames == 0 && image.status != SymbolStatus::Found {
        image.status = SymbolStatus::NoneNeeded;
    }
}
