//! The schemes that names are made by.

/// A way in which compilers write names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// C++ as all compilers but Microsoft's write it: `_Z…`, and `___Z…_block_invoke`.
    Itanium,
    /// Swift, of any generation: `$s…`, `$S…`, `_T0…`, `_T…`, `_Tt…`, `@__swiftmacro_…`.
    Swift,
    /// Rust, legacy (`_ZN…17h<hash>E`) and v0 (`_R…`).
    Rust,
    /// Objective-C methods and blocks: `-[Class selector:]`, `__24-[Class selector:]_block_invoke`.
    ObjC,
    /// D: `_D…`.
    D,
    /// C++ as Microsoft's compiler writes it: `?…`, and `.?A…` in type information. Read with the feature `msvc` only.
    Msvc,
}
