//! What Android's loader and runtime say of a native library or method that could not be used.
//!
//! Sources: bionic's `linker.cpp` and `linker_phdr.cpp`, which have the words; Android's "Changes for NDK developers"
//! (`android-changes-for-ndk-developers.md`) and "Support 16 KB page sizes" for the reasons.

use super::draft::Draft;

struct Refusal {
    /// A part of the message.
    part: &'static str,
    meaning: &'static str,
    cause: &'static str,
    next: &'static str,
}

/// The first that fits counts.
const REFUSALS: [Refusal; 10] = [
    Refusal {
        part: "cannot be smaller than system page size",
        meaning: "The library's segments are aligned to smaller pages than the device has.",
        cause: "A library that was linked for pages of 4 KB, on a device with pages of 16 KB.",
        next: "Link the library with NDK r28 or later, or with `-Wl,-z,max-page-size=16384`; take a newer version of it where it is somebody else's.",
    },
    Refusal {
        part: "has text relocations",
        meaning: "The library's code would have to be changed where it is loaded, which Android 6 and later refuse to apps.",
        cause: "A library that is not position-independent throughout: an old build, or assembly of its own.",
        next: "Build the library again with -fPIC and without text relocations (`readelf -d` shows TEXTREL), or take a newer version of it.",
    },
    Refusal {
        part: "cannot locate symbol",
        meaning: "The library was found, but a symbol that it needs is in none of the libraries that it names.",
        cause: "The library was built for a newer Android than the device's, whose C library has the symbol; or another version of a library that it needs is packaged.",
        next: "Build native code for the app's minSdkVersion (ANDROID_PLATFORM, APP_PLATFORM), and look which library is to have the symbol.",
    },
    Refusal {
        part: "is not accessible for the namespace",
        meaning: "The library is one of the system's that apps may not load since Android 7.",
        cause: "Native code that links against, or opens, a private library of the platform.",
        next: "Ship a copy of the library with the app, or use the NDK's public ones.",
    },
    Refusal {
        part: "unexpected e_machine",
        meaning: "The library was built for another processor than this process runs on.",
        cause: "A file of another ABI in the directory of this one.",
        next: "Look what `readelf -h` says of the library in each directory of lib/ in the APK.",
    },
    Refusal {
        part: "bit instead of",
        meaning: "The library is of 32 bits and the process of 64, or the other way round.",
        cause: "The app is packaged for several ABIs, and a library for some of them only: Android chose one by what it found.",
        next: "Package each native library for the same ABIs, or limit the app to those (ndk.abiFilters).",
    },
    Refusal {
        part: "No implementation found for",
        meaning: "The native method exists in no library that is loaded.",
        cause: "The library was not loaded yet, or its function has another name: a class or method that R8 renamed, a wrong signature.",
        next: "Call System.loadLibrary before, and keep native methods and their classes from being renamed.",
    },
    Refusal {
        part: "needed by",
        meaning: "A library that another one needs could not be loaded.",
        cause: "The needed library is not packaged for this processor, or is one that apps may not load.",
        next: "Look for the needed library in the APK's lib/ directory of the device's ABI.",
    },
    Refusal {
        part: "couldn't find \"",
        meaning: "The app's package has no such library for this device's processor.",
        cause: "The library was not built or packaged for this ABI, or only some parts of a split app were installed.",
        next: "Compare the ABI in nativeLibraryDirectories with the directories of lib/ in the APK.",
    },
    Refusal {
        part: "not found",
        meaning: "The library is in none of the places that apps load from.",
        cause: "The library was not packaged for this processor, has another name, or only some parts of a split app were installed.",
        next: "Look for it in the APK's lib/ directory of the device's ABI.",
    },
];

/// Tells what the message of a java.lang.UnsatisfiedLinkError means. False where it is none of those that are known.
pub(super) fn tell(message: &str, draft: &mut Draft) -> bool {
    let Some(refusal) = REFUSALS.iter().find(|refusal| message.contains(refusal.part)) else { return false };
    draft.say(refusal.meaning);
    draft.cause(refusal.cause);
    draft.next(refusal.next);
    true
}
