//! What dynamic loaders say of a program that cannot be loaded: glibc's, musl's, and the kernel of an executable.
//!
//! Sources: glibc `elf/dl-load.c`, `elf/dl-reloc.c`, `elf/dl-version.c`, ld.so(8), execve(2); musl `ldso/dynlink.c`.

use super::draft::Draft;
use super::facts::{Facts, field};
use super::words::one_line;

/// How the reader names what left the message.
const LOADER: &str = "(ld.so)";

/// What a reason means: a part of the text, the title, what happened, causes, what to do.
type Reason = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

pub(in crate::explain) static REASONS: [Reason; 16] = [
    (
        " not found (required by ",
        "A library is older than the program needs",
        "The program was built against a newer version of this library than the one that was found, and uses functions that only the newer one has.",
        &[
            "The program was built on a newer system than the one it runs on.",
            "An older library is found first: LD_LIBRARY_PATH, an environment such as conda's, a container's base image.",
        ],
        &[
            "Run it on a system as new as the one it was built on, or build it on the oldest that it has to run on.",
            "`ldd PROGRAM` shows which file is taken; `strings FILE | grep VERSION` whether it has the version. glibc itself cannot be exchanged for one program.",
        ],
    ),
    (
        "wrong ELF class",
        "A library is for another word size than the program (32 and 64 bit)",
        "The loader found a library of that name, and it is a 32-bit one for a 64-bit program, or the other way round.",
        &["LD_LIBRARY_PATH or a plug-in's path leads to the directory of the other architecture."],
        &["`file` on both; install the library for the program's architecture (`:i386`, `lib64`)."],
    ),
    (
        "static TLS block",
        "No room for a library's thread-local variables",
        "The library wants its thread-local variables in the block that every thread gets at its start, and a library that is loaded later finds only a small reserve there.",
        &[
            "Several such libraries (OpenMP's libgomp, jemalloc, OpenGL's) are loaded by dlopen(), in an order that uses the reserve up.",
        ],
        &[
            "Load it at the start: LD_PRELOAD=FILE, or import that module first.",
            "glibc 2.35 and later: GLIBC_TUNABLES=glibc.rtld.optional_static_tls=SIZE.",
        ],
    ),
    (
        "enable executable stack",
        "A library wants an executable stack",
        "The library is marked as needing a stack that can be executed, and the system refuses that.",
        &[
            "Assembly in it without a note `.note.GNU-stack`; nothing of it needs the stack to be executable, as a rule.",
        ],
        &[
            "Clear the mark (`execstack -c FILE`, `patchelf --clear-execstack`), or take a newer build. glibc 2.41 refuses such libraries in dlopen().",
        ],
    ),
    (
        "invalid ELF header",
        "A library's file is none",
        "The loader opened a file of that name, and it is no ELF file.",
        &[
            "A linker script or a text file (Git LFS's pointer, a copied symbolic link), a file of another system, a download that is an error page.",
        ],
        &["Look at it: `file FILE`, `head -c 100 FILE`."],
    ),
    (
        "file too short",
        "A library's file is empty or cut off",
        "The loader opened a file of that name, and it ends before its header does.",
        &[
            "A copy or an installation that was interrupted; a full disk; a package that has an empty file in place of a link.",
        ],
        &["Install the package again."],
    ),
    (
        "phentsize",
        "A library's file is damaged, or for another kind of processor",
        "The header of the file does not have the sizes that this loader expects.",
        &["A damaged file, or one for another architecture."],
        &["`readelf -h FILE`; install it again."],
    ),
    (
        "failed to map segment",
        "A library could not be mapped into memory",
        "The file was found and read, and the kernel refused to map it.",
        &[
            "It lies on a file system mounted `noexec` (/tmp, a home, a volume).",
            "A limit on memory (ulimit -v, a cgroup), or a rule of SELinux.",
        ],
        &[
            "`findmnt -T FILE` shows the mount's options; move it, or set the temporary directory elsewhere (TMPDIR).",
        ],
    ),
    (
        "restore segment prot",
        "The system refused to change a library's memory",
        "The library has relocations in its code, and a rule of the system forbids writable code.",
        &["SELinux's execmod, or memory that is used up; code that was built without -fPIC."],
        &["Build it with -fPIC; look into the audit log."],
    ),
    (
        "cannot open shared object file",
        "A shared library is missing",
        "The program could not start, or a module not be loaded, since a library that it needs was not found.",
        &[
            "The package with that library is not installed, or has another version (the number behind .so).",
            "It is installed where the loader does not look: neither in its cache (ldconfig), nor in the program's RUNPATH, nor in LD_LIBRARY_PATH.",
        ],
        &[
            "`ldd PROGRAM` lists all that are missing; look for the package that has the file (`apt-file search`, `dnf provides`).",
            "After an installation by hand run `ldconfig`, or set RUNPATH (`-Wl,-rpath,'$ORIGIN/lib'`).",
        ],
    ),
    (
        "undefined symbol",
        "A function or variable is missing from the libraries that were loaded",
        "The loader found every library, and none of them has a name that one of them needs: as a rule two versions do not fit each other.",
        &[
            "Two versions do not fit: the library that is found is older or newer than the one that was built against (LD_LIBRARY_PATH, conda, an old copy in /usr/local/lib).",
            "The library was linked without the one that has the name (-l is missing), or one is C++ of another ABI (`_GLIBCXX_USE_CXX11_ABI`).",
        ],
        &[
            "`c++filt NAME` tells what it is; `ldd FILE` which files are taken; `nm -D FILE | grep NAME` who has it.",
            "Build both anew against each other, or take the old copy away.",
        ],
    ),
    (
        "with link time reference",
        "A library does not have the version of a function that was linked",
        "The loader found the library, and the function in it has not the version that the program was linked with.",
        &["Two builds of one library: the one found at run time is not the one of the build."],
        &["`ldd FILE` shows which file is taken; install matching versions."],
    ),
    (
        "symbol not found",
        "A function or variable is missing from the libraries that were loaded",
        "musl's loader found every library, and none of them has that name.",
        &[
            "A program or module that was built for glibc runs on musl (Alpine): names with `__` such as `__res_init`, `__vfprintf_chk` or `gnu_get_libc_version` are glibc's.",
            "Two versions of a library do not fit.",
        ],
        &["Take a build for musl, or an image with glibc; `apk add gcompat` helps simple programs."],
    ),
    (
        "Error loading shared library",
        "A shared library is missing",
        "musl's loader did not find a library that the program needs.",
        &[
            "The package with it is not installed.",
            "The program was built for glibc and runs on musl (Alpine): `libc.so.6`, `ld-linux-x86-64.so.2` and `libm.so.6` are glibc's.",
        ],
        &[
            "`apk add` the package that has it (`apk search -x so:NAME`); take a build for musl, or an image with glibc.",
        ],
    ),
    (
        "required file not found",
        "The program's interpreter or loader is missing",
        "The file is there; the interpreter in its first line, or the dynamic loader that it names, is not.",
        &[
            "A program for glibc on musl (Alpine), or a 32-bit one on a system without 32-bit libraries.",
            "A script with Windows' line ends, whose interpreter has a carriage return in its name.",
        ],
        &[
            "`file PROGRAM` and `readelf -l PROGRAM | grep interpreter`; for scripts `head -1 PROGRAM | od -c`.",
        ],
    ),
    (
        "xec format error",
        "The file is no program for this machine",
        "The kernel refused to execute the file.",
        &[
            "It is for another processor: an image of arm64 on x86_64, or the other way round.",
            "A script without `#!` in its first line, an empty or damaged file.",
        ],
        &[
            "`file PROGRAM` and `uname -m`; of containers build for the right one (`docker buildx build --platform`).",
        ],
    ),
];

/// How the reader names what left Qt's message.
const QT: &str = "(Qt)";

/// Qt's plugin for windows could not be loaded, which ends the program.
///
/// Source: Qt's documentation, "Qt for Linux/X11: Platform Plugin Dependencies" and "Deploying Plugins"; `QT_DEBUG_PLUGINS`.
pub(super) fn qt_platform(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(said) = facts.said.iter().find(|said| said.place.ends_with(QT)) else { return false };
    let text = one_line(&said.text);
    let mut quoted = text.split('"').skip(1).step_by(2);
    let plugin = quoted.next().unwrap_or_default();
    let directory = quoted.next().unwrap_or_default();
    let was_found = text.contains("even though it was found");
    draft.lead(
        format!("Qt's platform plugin could not be loaded: {plugin}"),
        "Qt needs a plugin to draw windows and found none that it could load: it ended the program.",
    );
    if was_found {
        draft.say(
            "The plugin's file was found: what it needs itself is missing, or is of another version of Qt.",
        );
    }
    let is_others = directory.contains("/cv2/");
    if is_others {
        draft.say(format!(
            "It was looked for in {directory}, which is a Qt that another package brings along (OpenCV)."
        ));
        draft.cause("Two Qt in one process: the package opencv-python sets the path of plugins to its own, which do not fit the Qt of PyQt or PySide.");
        draft.next("Install opencv-python-headless in the place of opencv-python, or import cv2 after the application was made and unset QT_QPA_PLATFORM_PLUGIN_PATH.");
    }
    if plugin == "xcb" {
        draft.cause("Libraries of X11 that the plugin needs are not installed: libxcb-cursor0 (from Qt 6.5 on), libxcb-xinerama0, libxcb-icccm4, libxcb-image0, libxcb-keysyms1, libxcb-render-util0, libxkbcommon-x11-0.");
    }
    draft.causes(&[
        "The plugin is not where the program looks: `platforms/` was not shipped with it, or QT_PLUGIN_PATH leads to another Qt's.",
        "There is no display: DISPLAY is not set, as in containers and over ssh (then `QT_QPA_PLATFORM=offscreen`).",
    ]);
    draft.next("Set QT_DEBUG_PLUGINS=1: Qt then says which file it tried and which library was missing. `ldd` on the plugin's file says the same.");
    draft.evidence(said.cite());
    true
}

/// A message of the loader.
pub(super) fn message(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(said) = facts.said.iter().find(|said| said.place.ends_with(LOADER)) else { return false };
    let text = one_line(&said.text);
    match REASONS.iter().find(|(part, ..)| text.contains(part)) {
        Some((part, title, what, causes, next)) => {
            // The reader made a mangled name readable.
            let readable = field(&facts.report.fields, "symbol");
            let name = readable.filter(|_| part.contains("symbol")).or_else(|| subject(&text, part));
            let name = name.map(|name| format!(": {name}")).unwrap_or_default();
            draft.lead(format!("{title}{name}"), what);
            draft.causes(causes);
            draft.nexts(next);
        }
        None => draft.lead(
            "The dynamic loader could not load the program",
            "The loader ended the program before its main function, or refused a module; it says why.",
        ),
    }
    draft.evidence(said.cite());
    true
}

/// The library, version or symbol that the message is about.
fn subject<'t>(text: &'t str, part: &str) -> Option<&'t str> {
    let before = |mark: &str| text.split_once(mark).map(|(before, _)| before);
    let last = |text: &'t str| text.rsplit([' ', '`', '\'', '"', '/']).next();
    match part {
        " not found (required by " => {
            before(part).map(|before| before.trim_end_matches(['\'', '"', '`'])).and_then(last)
        }
        "undefined symbol" => {
            text.split_once("undefined symbol: ").and_then(|(_, name)| name.split([',', ' ']).next())
        }
        "symbol not found" => before(": symbol not found").and_then(last),
        "with link time reference" => {
            text.split_once(": symbol ").and_then(|(_, name)| name.split([',', ' ']).next())
        }
        "Error loading shared library" => {
            text.split_once("Error loading shared library ").and_then(|(_, name)| name.split(':').next())
        }
        "required file not found" | "xec format error" => {
            let program = before(": cannot execute")
                .or_else(|| before(": exec format"))
                .or_else(|| before(": Exec format"))?;
            last(program.trim_matches(['"', '\'']))
        }
        _ => {
            let (before, _) = text.split_once(&format!(": {part}")).or_else(|| text.split_once(part))?;
            last(before.rsplit(": ").find(|word| word.contains(".so") || word.contains('/'))?)
        }
    }
    .filter(|name| !name.is_empty())
}
