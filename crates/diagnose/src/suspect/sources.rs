//! Whose code lies at a path of the source: where languages, package managers and build systems keep what is not the program's own.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use backtrail_model::OwnerKind;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What a path holds, and whose the code there is.
pub(super) struct PlaceRule {
    part: &'static str,
    pub(super) owner: OwnerKind,
    pub(super) what: &'static str,
    /// Whether it is a language's library, whose code compilers inline into a program's.
    is_inlined: bool,
}

const fn system(part: &'static str, what: &'static str) -> PlaceRule {
    PlaceRule { part, owner: OwnerKind::System, what, is_inlined: false }
}

const fn inlined(part: &'static str, what: &'static str) -> PlaceRule {
    PlaceRule { part, owner: OwnerKind::System, what, is_inlined: true }
}

const fn library(part: &'static str, what: &'static str) -> PlaceRule {
    PlaceRule { part, owner: OwnerKind::Sdk, what, is_inlined: false }
}

/// Parts of the paths of source files. The first that fits decides.
static SOURCES: [PlaceRule; 75] = [
    library("/gems/", "a gem that was installed"),
    system("/lib/ruby/", "Ruby's library"),
    system("<internal:", "Ruby's library"),
    library("/vendor/laravel/", "a package of Composer"),
    library("/vendor/symfony/", "a package of Composer"),
    library("/wp-includes/", "WordPress itself"),
    library("/wp-content/plugins/", "a plugin of WordPress"),
    // `perl -V`: where modules of CPAN are, by make, by distributions, by local::lib; the rest of @INC is Perl's own.
    library("/site_perl/", "a module of CPAN"),
    library("/vendor_perl/", "a module of CPAN"),
    library("/share/perl5/", "a module of CPAN"),
    library("/perl5/lib/perl5/", "a module of CPAN"),
    system("/lib/perl5/", "Perl's library"),
    system("/share/perl/", "Perl's library"),
    library("/.julia/packages/", "a package that was installed"),
    library("/.julia/dev/", "a package"),
    system("/julialang/", "Julia's runtime"),
    system("/share/julia/", "Julia's library"),
    system("/buildbot/", "Julia's runtime"),
    system("libraries/base/", "Haskell's library"),
    system("libraries/ghc-internal/", "Haskell's library"),
    system("libraries/ghc-prim/", "Haskell's library"),
    system("package:flutter/", "Flutter's framework"),
    system("dart:", "Dart's library"),
    system("org-dartlang-", "Dart's library"),
    system("/ocaml/stdlib/", "OCaml's library"),
    system("stdlib.ml", "OCaml's library"),
    system("src/core/lwt.ml", "the library Lwt"),
    system("vg_replace_malloc.c", "Valgrind itself"),
    system("vg_replace_strmem.c", "Valgrind itself"),
    library("/.opam/", "a package that was installed"),
    library("/.stack/", "a package that was installed"),
    library("/.pub-cache/", "a package that was installed"),
    library("/site-packages/", "a package that was installed"),
    library("/dist-packages/", "a package that was installed"),
    library("/node_modules/", "a package that was installed"),
    library("/pkg/mod/", "a module that Go downloaded"),
    library("/vendor/github.com/", "a copy of a module"),
    library("/vendor/golang.org/", "a copy of a module"),
    library("/.cargo/registry/", "a crate from the registry"),
    library("/cargo/registry/src/", "a crate from the registry"),
    library("/.cargo/git/", "a crate from a repository"),
    library("/.nuget/packages/", "a package that was installed"),
    inlined("/rustc/", "Rust's library"),
    inlined("/rustlib/src/rust/", "Rust's library"),
    inlined("/library/std/src/", "Rust's library"),
    inlined("/library/core/src/", "Rust's library"),
    inlined("/library/alloc/src/", "Rust's library"),
    system("/go/src/runtime/", "Go's library"),
    system("/golang/src/", "Go's library"),
    system("/libexec/src/", "Go's library"),
    system("node:internal/", "Node itself"),
    system("internal/modules/", "Node itself"),
    system("internal/process/", "Node itself"),
    system("<frozen ", "Python's library"),
    system("/lib/python2", "Python's library"),
    system("/lib/python3", "Python's library"),
    system("/lib64/python3", "Python's library"),
    system("/compiler-rt/", "the sanitizer itself"),
    system("/libsanitizer/", "the sanitizer itself"),
    system("sanitizer_common/", "the sanitizer itself"),
    system("/libfuzzer/", "the fuzzer"),
    system("/libFuzzer/", "the fuzzer"),
    system("/lib/fuzzer/", "the fuzzer"),
    system("/sysdeps/", "the C library"),
    system("/glibc-", "the C library"),
    system("/eglibc-", "the C library"),
    system("/build/glibc", "the C library"),
    system("/csu/", "the C library"),
    system("/nptl/", "the C library"),
    system("bionic/libc/", "the C library"),
    inlined("/include/c++/", "the C++ library"),
    inlined("/libcxx/", "the C++ library"),
    inlined("/libc++/", "the C++ library"),
    inlined("/usr/include/", "headers that the system keeps"),
    library("/MoltenVK/", "MoltenVK"),
];

/// The rule for a file.
pub(super) fn rule_for(file: &str) -> Option<&'static PlaceRule> {
    rules_for(&with_slashes(file)).min().and_then(|position| SOURCES.get(position))
}

/// Whether a file is of a language's library, whose code compilers inline into a program's.
pub(super) fn is_inlined(file: &str) -> bool {
    let is_inlined = |position: usize| SOURCES.get(position).is_some_and(|rule| rule.is_inlined);
    rules_for(&with_slashes(file)).any(is_inlined)
}

/// The positions of the rules that fit a path. It is asked of each frame of a stack, so all parts are looked for in one go.
fn rules_for(file: &str) -> impl Iterator<Item = usize> {
    static PARTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        AhoCorasick::builder().kind(kind).build(SOURCES.iter().map(|rule| rule.part)).ok()
    });
    let inside = PARTS.iter().flat_map(move |parts| parts.find_overlapping_iter(file));
    // Parts that name a directory also stand at the beginning of relative paths.
    let is_first = move |rule: &PlaceRule| {
        let directory = rule.part.strip_prefix('/').filter(|part| part.contains('/'));
        directory.is_some_and(|part| file.starts_with(part))
    };
    let first = SOURCES.iter().enumerate().filter(move |(_, rule)| is_first(rule));
    inside.map(|found| found.pattern().as_usize()).chain(first.map(|(position, _)| position))
}

/// A path of Windows with slashes.
fn with_slashes(file: &str) -> Cow<'_, str> {
    if file.contains('\\') { Cow::Owned(file.replace('\\', "/")) } else { Cow::Borrowed(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_every_system() {
        for (file, owner) in [
            ("/app/node_modules/queue/index.js", OwnerKind::Sdk),
            ("node_modules/queue/index.js", OwnerKind::Sdk),
            ("...\\node_modules\\queue\\index.js", OwnerKind::Sdk),
            ("C:\\Python\\Lib\\site-packages\\shop\\cart.py", OwnerKind::Sdk),
            ("lib/python3.12/json/decoder.py", OwnerKind::System),
        ] {
            assert_eq!(rule_for(file).map(|rule| rule.owner), Some(owner), "{file}");
        }
        assert!(rule_for("src/shop/cart.py").is_none());
        assert!(is_inlined("/usr/include/c++/13/bits/stl_vector.h"));
        assert!(!is_inlined("/app/node_modules/queue/index.js"));
    }
}
