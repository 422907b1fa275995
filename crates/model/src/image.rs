//! One binary that a process had mapped, and where its symbols are.

use backtrail_core::{AddrRange, Arch, Avma, Bias, FileOffset, ImageId, Reason};

/// One image of the process.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Image {
    /// Its file's name.
    pub name: String,
    /// Its path on the device.
    pub path: Option<String>,
    /// Its identity.
    pub id: Option<ImageId>,
    /// Its architecture.
    pub arch: Option<Arch>,
    /// Where its first byte was mapped.
    pub load_address: Avma,
    /// The first address behind it, where the report states a size.
    pub end_address: Option<Avma>,
    /// Its bundle identifier.
    pub bundle_id: Option<String>,
    /// Its version as printed.
    pub version: Option<String>,
    /// Whether the report marks it as third party's (`+` before its name); reports that use no marks have `false`
    /// everywhere.
    pub third_party: bool,
    /// Where the system found it, in Apple's letter: `P` process, `S` shared cache, `K` kernel…
    pub source: Option<String>,
    /// Where it begins in the file at its path, where the report states that: a library that was loaded from an APK.
    pub file_offset: Option<FileOffset>,
    /// Where its code was mapped, where a report states no more of its place: Linux's kernel, whose line has the one mapping
    /// that an instruction lies in.
    pub code_mapping: Option<AddrRange<Avma>>,
    /// Where its symbols are, or why there are none.
    pub symbols: ImageSymbols,
}

impl Image {
    /// Whether this is a row that stands for no image: `???` over nothing or over everything.
    pub fn is_filler(&self) -> bool {
        let nameless = self.name.is_empty() || self.name == "???";
        nameless && self.id.is_none() && self.load_address == Avma::new(0)
    }
}

/// Where an image's symbols are, or why there are none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImageSymbols {
    /// The outcome.
    pub status: SymbolStatus,
    /// The files that answered, for people: paths, `zip!member` inside archives.
    pub files: Vec<String>,
    /// What was tried without success, for people: searched directories, near misses, unreadable files and why.
    pub tried: Vec<String>,
    /// Load address minus stated address; known once the file is.
    pub bias: Option<Bias>,
    /// How many frames lie in this image and have no name.
    pub unnamed_frames: usize,
    /// Whether a file of the right identity was there and could not be read.
    pub unreadable: bool,
    /// How to come by the names that frames are without, for people.
    pub how_to_get: Option<String>,
    /// Whether the file was taken by its name alone, since the report states no identity.
    pub is_unproven: bool,
}

/// The outcome of looking for an image's symbols.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum SymbolStatus {
    /// No frame needs them.
    #[default]
    NoneNeeded,
    /// Found, by identity.
    Found,
    /// The file is there and has no more than the names that it exports: no debug info, no symbol table.
    ExportsOnly,
    /// The file is there and has no names for frames of it.
    Stripped,
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
            Self::ExportsOnly => "exports-only",
            Self::Stripped => "stripped",
            Self::Missing => "missing",
            Self::IdMismatch(_) => "id-mismatch",
        }
    }
}

impl ImageSymbols {
    /// Why a frame of the image has no name; `has_id` is whether the image states an identity.
    pub fn reason(&self, has_id: bool) -> Reason {
        match self.status {
            SymbolStatus::IdMismatch(_) => Reason::IdMismatch,
            _ if !has_id => Reason::NoId,
            _ if self.unreadable => Reason::Unreadable,
            _ => Reason::MissingSymbols,
        }
    }

    /// Whether a frame stayed without a name.
    pub fn is_incomplete(&self) -> bool {
        self.unnamed_frames > 0
    }

    /// Whether a file of the image is there, whatever is in it.
    pub fn has_file(&self) -> bool {
        matches!(self.status, SymbolStatus::Found | SymbolStatus::ExportsOnly | SymbolStatus::Stripped)
    }

    /// Takes a frame without a name out of the account.
    pub fn forget_unnamed(&mut self) {
        self.unnamed_frames = self.unnamed_frames.saturating_sub(1);
        if self.unnamed_frames == 0 && !matches!(self.status, SymbolStatus::Found | SymbolStatus::ExportsOnly)
        {
            self.status = SymbolStatus::NoneNeeded;
        }
    }
}
