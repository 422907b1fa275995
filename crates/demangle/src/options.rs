//! What the caller decides about the readable form.

use crate::Scheme;

/// How the readable form is to look.
///
/// The defaults are what a crash report wants: everything that tells two functions apart, nothing folded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Print the parameters of functions: `f(int)`, not `f`. Default: yes.
    pub parameters: bool,
    /// Print return types where the mangled name states them (C++: function templates only; Swift: everywhere).
    /// Default: yes.
    pub return_types: bool,
    /// Print return types also of the functions that local names of C++ are in, such as the template that a lambda was
    /// written in; GNU's tools leave them out. Default: yes.
    pub local_return_types: bool,
    /// Which form Swift names take.
    pub swift: SwiftStyle,
    /// Swift's short words for common types: `[Int]` and `Int?` rather than `Array<Int>` and `Optional<Int>`.
    /// Default: yes.
    pub sugar: bool,
    /// Fold template and generic arguments. Default: none are folded.
    pub fold_templates: Option<FoldTemplates>,
    /// Read what is no mangled name as the mangled name of a C++ type: `PKc` as `char const*`. Default: no, for most
    /// words are types by accident.
    pub types: bool,
    /// Read names of this scheme only. Default: of every one.
    pub scheme: Option<Scheme>,
    /// Whether names have the underscore that Mach-O and some others put in front of all of them.
    pub underscore: Underscore,
    /// The most bytes that one readable name may take; a longer one is cut and ends in `...`. Default: 1 MiB.
    pub max_len: usize,
}

/// Which template-argument lists are replaced by `<...>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldTemplates {
    /// Lists nested deeper than this are folded: with 1, `A<B<...>>`; with 0, `A<...>`.
    pub depth: u32,
    /// Lists longer than this many bytes are folded.
    pub len: usize,
}

/// The two forms in which Swift's own tools show a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SwiftStyle {
    /// All that the name says: modules, argument labels, types, what a specialization was made for.
    #[default]
    Full,
    /// The short form that Xcode shows, as `swift demangle --simplified` prints it.
    Simplified,
}

/// The underscore that some object formats (Mach-O, 32-bit PE) put in front of every name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Underscore {
    /// It may be there or not.
    #[default]
    Either,
    /// It is there: what has none, is not mangled.
    Present,
    /// It is not there: what has one more than its scheme writes, is not mangled.
    Absent,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            parameters: true,
            return_types: true,
            local_return_types: true,
            swift: SwiftStyle::Full,
            sugar: true,
            fold_templates: None,
            types: false,
            scheme: None,
            underscore: Underscore::Either,
            max_len: 1 << 20,
        }
    }
}

impl Options {
    /// The shortest form that still names the function: no parameters, no return type, Swift's simplified form.
    #[must_use]
    pub fn short() -> Self {
        Options {
            parameters: false,
            return_types: false,
            swift: SwiftStyle::Simplified,
            ..Options::default()
        }
    }
}
