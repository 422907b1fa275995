//! Whose an object file is, by where the linker took it from. An archive may be the app's makers' own: its name is a fact,
//! whose it is a guess.

use backtrail_core::Confidence;
use backtrail_model::{Owner, OwnerKind};

/// Archives and objects that come with compilers and systems.
const TOOLCHAIN: [&str; 12] = [
    "libclang_rt.",
    "libswiftCompatibility",
    "libgcc",
    "libstdc++",
    "libsupc++",
    "libc++",
    "libunwind",
    "libc.",
    "libm.",
    "libpthread.",
    "libarclite",
    "libobjc",
];

/// Whose the code of an object file is, as a linker or debug info names it: `/…/libFoo.a(bar.o)`, `/…/Foo.framework/Foo(bar.o)`, `/…/main.o`.
pub fn owner(path: &str) -> Option<Owner> {
    let (file, member) = match path.strip_suffix(')').and_then(|path| path.rsplit_once('(')) {
        Some((archive, member)) => (archive, Some(member)),
        None => (path, None),
    };
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let sdk = |name: &str, how: String| Owner {
        kind: OwnerKind::Sdk,
        name: Some(name.to_owned()),
        confidence: Some(Confidence::Likely),
        how: how.into(),
        file: Some(path.into()),
        ..Owner::default()
    };
    let is_toolchain = TOOLCHAIN.iter().any(|start| base.starts_with(start))
        || (base.starts_with("crt") || base == "Scrt1.o") && base.ends_with(".o");
    if is_toolchain {
        return Some(Owner {
            kind: OwnerKind::System,
            name: Some(base.to_owned()),
            confidence: Some(Confidence::Strong),
            how: "archive of the compiler".into(),
            file: Some(path.into()),
            ..Owner::default()
        });
    }
    if member.is_some() {
        // Rust's archives have a hash: `libregex-0123456789abcdef.rlib`.
        let stem = base.rsplit_once('.').map_or(base, |(stem, _)| stem);
        let stem = stem.strip_prefix("lib").filter(|rest| !rest.is_empty()).unwrap_or(stem);
        let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let stem = stem.rsplit_once('-').filter(|(_, hash)| is_hash(hash)).map_or(stem, |(name, _)| name);
        return Some(sdk(stem, format!("archive {base}")));
    }
    // Xcode links each product of a package into one object: `Build/Products/Release-iphoneos/Foo.o`.
    let stem = base.strip_suffix(".o")?;
    let mut directories = file.rsplit('/').skip(2);
    if directories.next() == Some("Products") && directories.next() == Some("Build") {
        return Some(sdk(stem, format!("package product {base}")));
    }
    None
}

/// Whether this is an object file on its own, which only the app's own build hands to the linker. What link-time optimization
/// left is a mixture of all.
pub(super) fn is_apps_own(path: &str) -> bool {
    let base = path.rsplit(['/', '\\']).next().unwrap_or(path);
    base.ends_with(".o") && !base.contains("lto") && !path.contains(".lto.")
}

#[cfg(test)]
mod tests {
    use super::owner;
    use backtrail_model::OwnerKind;

    #[test]
    fn object_files_are_told_by_their_archives() {
        use OwnerKind::{Sdk, System};
        for (path, expected) in [
            ("/w/libs/libVendor.a(net.o)", Some((Sdk, "Vendor"))),
            ("/w/Vendor.framework/Vendor(net.o)", Some((Sdk, "Vendor"))),
            ("/w/libregex-0123456789abcdef.rlib(regex.o)", Some((Sdk, "regex"))),
            ("/D/Build/Products/Release-iphoneos/Foo.o", Some((Sdk, "Foo"))),
            ("/D/Build/Intermediates.noindex/App.build/Objects-normal/arm64/Foo.o", None),
            ("/t/libclang_rt.ios.a(divti3.o)", Some((System, "libclang_rt.ios.a"))),
            ("/usr/lib/crt1.o", Some((System, "crt1.o"))),
            ("main.o", None),
            ("/tmp/lto", None),
            ("", None),
            (")", None),
        ] {
            let found = owner(path);
            let found = found.as_ref().map(|owner| (owner.kind, owner.name.as_deref().unwrap()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
