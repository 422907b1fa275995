//! Whose code a report points at.
//!
//! The innermost frame that is not the system's decides. Frames are passed over from the innermost outwards while
//! they lie in system images, or are functions that end up on top without being at fault ([`crate::suspect`]: abort, throw,
//! reference counting, locks, allocators, crash reporters). The first frame left belongs to the app's own binary, or
//! to a library that the app ships or loads, named by its image; where none is left, it was the system.
//!
//! That is where to look first, not proof of guilt: a damaged heap breaks whoever uses it next. The evidence says
//! what the verdict rests on.

mod walk;

#[cfg(test)]
mod tests;

use backtrail_model::{Image, Report};

/// Whose code it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verdict {
    /// The app's own.
    App,
    /// A library's that the app ships or loads.
    Sdk,
    /// The operating system's, or that of tools by the same maker.
    System,
    /// The report does not tell.
    #[default]
    Unknown,
}

impl Verdict {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Sdk => "sdk",
            Self::System => "system",
            Self::Unknown => "unknown",
        }
    }
}

/// A verdict with what it rests on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attribution {
    /// Whose code it was.
    pub verdict: Verdict,
    /// The app, the library or the system's image, by name.
    pub name: Option<String>,
    /// What says so, the deciding statement first.
    pub evidence: Vec<String>,
}

/// Whose code lies at a function of a binary that the code of several makers was linked into.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticOwner {
    /// The library's name.
    pub library: String,
    /// What says so: a name prefix, a source path…
    pub evidence: String,
}

/// Knows static libraries by what is linked into the app: class and symbol prefixes, source paths of its debug info.
///
/// [`attribute_with`] asks it for each function, innermost first, of a frame in the app's own binary or in a shipped
/// library. `None` leaves the code to the image's owner.
pub trait StaticOwners {
    /// Whose `function`, defined in `file`, is.
    fn owner(&self, image: &Image, function: &str, file: Option<&str>) -> Option<StaticOwner>;
}

/// Knows no static libraries.
struct NoStaticOwners;

impl StaticOwners for NoStaticOwners {
    fn owner(&self, _: &Image, _: &str, _: Option<&str>) -> Option<StaticOwner> {
        None
    }
}

/// Tells whose code `report` points at, by images alone.
pub fn attribute(report: &Report) -> Attribution {
    attribute_with(report, &NoStaticOwners)
}

/// Tells whose code `report` points at; `owners` knows the static libraries inside of images.
pub fn attribute_with(report: &Report, owners: &dyn StaticOwners) -> Attribution {
    walk::attribute(report, owners)
}
