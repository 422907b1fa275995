//! C++ as Microsoft's compiler writes it, read by the `undname` crate if the feature `msvc` is on.
//!
//! That crate writes no more than a megabyte, which bounds what a name with many references can grow to; how deeply it
//! nests is bounded by the length that is let through.

use crate::Options;
use crate::error::Failed;
use crate::limited::Limited;
use core::fmt;

/// The longest name that is read, as long as Microsoft's linker allows; nested all through it takes less than two
/// megabytes of stack.
#[cfg(feature = "msvc")]
const MAX_NAME: usize = 4096;

/// Writes the readable form of a name.
#[cfg(feature = "msvc")]
pub(crate) fn demangle<W: fmt::Write>(
    name: &str,
    options: &Options,
    out: &mut Limited<W>,
) -> Result<(), Failed> {
    use undname::Flags;

    if name.len() > MAX_NAME {
        return Err(Failed::TooComplex(0));
    }
    let mut flags = Flags::default();
    if !options.parameters {
        flags |= Flags::NAME_ONLY;
    }
    if !options.return_types {
        flags |= Flags::NO_RETURN_TYPE;
    }
    let text = undname::demangle(name, flags).map_err(|_| Failed::Invalid(0))?;
    Ok(fmt::Write::write_str(out, &text)?)
}

/// Says that this build reads no such names.
#[cfg(not(feature = "msvc"))]
pub(crate) fn demangle<W: fmt::Write>(_: &str, _: &Options, _: &mut Limited<W>) -> Result<(), Failed> {
    Err(Failed::Unsupported)
}

#[cfg(test)]
mod tests {
    use crate::{Demangler, Options, Scheme, scheme};

    #[test]
    #[cfg(feature = "msvc")]
    fn names() {
        let short = Options { parameters: false, ..Options::default() };
        for (name, whole, without_parameters) in [
            (
                "?run@Base@app@@UEBAHH@Z",
                "public: virtual int __cdecl app::Base::run(int) const",
                "app::Base::run",
            ),
            ("??1Base@app@@UEAA@XZ", "public: virtual __cdecl app::Base::~Base(void)", "app::Base::~Base"),
        ] {
            assert_eq!(scheme(name), Some(Scheme::Msvc));
            assert_eq!(Demangler::new().demangle(name, &Options::default()).unwrap(), whole);
            assert_eq!(Demangler::new().demangle(name, &short).unwrap(), without_parameters);
        }
    }

    /// Each level names the one below four times.
    #[test]
    #[cfg(feature = "msvc")]
    fn names_that_would_grow() {
        let level = |inside: alloc::string::String| alloc::format!("V?$A@{inside}V1@V1@V1@@@");
        let name = (0..200).fold("V?$A@H@@".into(), |inside, _| level(inside));
        let name = alloc::format!("?f@@YAX{name}@Z");
        assert!(Demangler::new().demangle(&name, &Options::default()).is_err());
    }

    #[test]
    #[cfg(not(feature = "msvc"))]
    fn names_are_known_to_be_mangled() {
        assert_eq!(scheme("?run@Base@app@@UEBAHH@Z"), Some(Scheme::Msvc));
        let error = Demangler::new().demangle("?run@Base@app@@UEBAHH@Z", &Options::default()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    }
}
