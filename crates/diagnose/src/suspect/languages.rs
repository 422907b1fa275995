//! Whose code a frame of a language is, by the names that the language and its library have.

use super::owner::Ownership;
use backtrail_model::{Frame, OwnerKind, Report};

/// What a path or a name says. What is taken for the program's own may be a library that was built with it.
pub(super) fn told(owner: OwnerKind, why: impl Into<String>) -> Ownership {
    match owner {
        OwnerKind::Unknown => Ownership::unknown(why),
        OwnerKind::App => Ownership::likely(owner, "path or name", why),
        OwnerKind::Sdk | OwnerKind::System => Ownership::strong(owner, "path or name", why),
    }
}

/// Whether a function is of Rust's library, or of the crate that takes its stacks; newer compilers write the crate's hash behind its
/// name.
pub(super) fn is_rusts(name: &str) -> bool {
    const CRATES: [&str; 6] = ["std", "core", "alloc", "backtrace", "__rustc", "panic_unwind"];
    let path = name.trim_start_matches(['<', '&', '*']);
    let first = path.split([':', '[']).next().unwrap_or_default();
    /// Before 2015 functions of the library `std` had no `std::` before them.
    const OLD: [&str; 6] = [
        "sys::backtrace::",
        "panicking::",
        "sys_common::",
        "rt::unwind::",
        "result::unwrap_failed",
        "option::Option<T>::",
    ];
    CRATES.contains(&first) && path.len() > first.len() || OLD.iter().any(|begin| name.starts_with(begin))
}

/// Whether a file is one of Python's library by a relative path, as programs have it that ship the interpreter (`./traceback.py`,
/// `json/decoder.py`). Modules that programs like to name so, too, are not among them.
///
/// Source: Python's `sys.stdlib_module_names`.
pub(super) fn is_pythons(file: &str) -> bool {
    const PACKAGES: [&str; 17] = [
        "asyncio",
        "collections",
        "concurrent",
        "ctypes",
        "email",
        "encodings",
        "http",
        "importlib",
        "json",
        "logging",
        "multiprocessing",
        "re",
        "sqlite3",
        "unittest",
        "urllib",
        "xml",
        "xmlrpc",
    ];
    const MODULES: [&str; 22] = [
        "_bootstrap",
        "bdb",
        "codecs",
        "contextlib",
        "copyreg",
        "functools",
        "linecache",
        "pickle",
        "runpy",
        "selectors",
        "shutil",
        "socket",
        "socketserver",
        "sre_compile",
        "sre_parse",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "traceback",
        "weakref",
        "zipfile",
    ];
    let path = file.strip_prefix("./").unwrap_or(file);
    match path.split_once('/') {
        Some((package, rest)) => PACKAGES.contains(&package) && !rest.contains('/') && rest.ends_with(".py"),
        None => path.strip_suffix(".py").is_some_and(|module| MODULES.contains(&module)),
    }
}

/// Modules of Erlang's and Elixir's own applications, which rows name.
pub(super) fn beam(frame: &Frame, name: &str, file: &str) -> Ownership {
    const APPLICATIONS: [&str; 12] = [
        "elixir", "stdlib", "kernel", "erts", "ex_unit", "mix", "iex", "logger", "eex", "crypto", "ssl",
        "mnesia",
    ];
    const FILES: [&str; 9] = [
        "gen_server.erl",
        "gen_statem.erl",
        "proc_lib.erl",
        "gen.erl",
        "gen_event.erl",
        "supervisor.erl",
        "lists.erl",
        "erl_eval.erl",
        "timer.erl",
    ];
    let row = frame.annotations.iter().find_map(|note| note.strip_prefix('(')?.strip_suffix(')'));
    let application = row.map(|row| row.split(' ').next().unwrap_or(row));
    let is_own = file.rsplit('/').next().is_some_and(|file| FILES.contains(&file));
    match application {
        Some(application) if APPLICATIONS.contains(&application) || is_own => {
            told(OwnerKind::System, format!("{application} is an application of Erlang or Elixir"))
        }
        _ if is_own => told(OwnerKind::System, format!("{file} is a file of Erlang's library")),
        Some(application) => {
            told(OwnerKind::App, format!("{application} is no application of Erlang's or Elixir's"))
        }
        None => told(OwnerKind::App, format!("{name} is no function of Erlang's or Elixir's applications")),
    }
}

/// OCaml's own modules, by their names or, in old programs, by their files.
pub(super) fn ocaml(name: &str, file: &str) -> Ownership {
    const FILES: [&str; 12] = [
        "list.ml",
        "map.ml",
        "set.ml",
        "hashtbl.ml",
        "array.ml",
        "string.ml",
        "bytes.ml",
        "buffer.ml",
        "printexc.ml",
        "stream.ml",
        "scanf.ml",
        "camlinternalFormat.ml",
    ];
    let of_base = file.strip_prefix("src/").is_some_and(|file| FILES.contains(&file));
    if name.starts_with("Stdlib")
        || name.starts_with("Base__")
        || name.starts_with("Base.")
        || FILES.contains(&file)
        || of_base
    {
        return told(OwnerKind::System, format!("{file} is a file of the language's library"));
    }
    told(OwnerKind::App, format!("{file} is no file of the language's library"))
}

/// The package of the outermost frame of the first stack that is of neither Dart's nor Flutter's library.
fn outermost_package(report: &Report) -> Option<&str> {
    let frames = &report.process.backtraces.first()?.frames;
    frames.iter().rev().find_map(|frame| {
        let file = frame.reported.as_ref()?.file.as_deref()?;
        file.strip_prefix("package:")?.split('/').next().filter(|package| *package != "flutter")
    })
}

/// A package that the app does not bear the name of may be anybody's: the report does not say which is the app's.
pub(super) fn dart(report: &Report, function: &str, file: &str) -> Ownership {
    /// Classes of Flutter's framework (`widgets/framework.dart`, `widgets/binding.dart`, `rendering/object.dart`), for stacks that
    /// name no files.
    const FLUTTERS: [&str; 18] = [
        "BuildOwner",
        "ComponentElement",
        "Element",
        "InheritedElement",
        "MultiChildRenderObjectElement",
        "ParentDataElement",
        "PipelineOwner",
        "ProxyElement",
        "RenderBox",
        "RenderObject",
        "RenderObjectElement",
        "SingleChildRenderObjectElement",
        "State",
        "StatefulElement",
        "StatelessElement",
        "WidgetsBinding",
        "_InactiveElements",
        "_RootElement",
    ];
    let class = function.split('.').next().unwrap_or_default();
    if file.is_empty() && FLUTTERS.contains(&class) {
        return told(OwnerKind::System, format!("{class} is a class of Flutter's framework"));
    }
    let package = file.strip_prefix("package:").and_then(|rest| rest.split('/').next());
    let name = report.process.name.as_deref().unwrap_or_default();
    match package {
        Some(package) if package == name => {
            told(OwnerKind::App, format!("the package {package} is the program's"))
        }
        // What the framework calls is the program's, as a rule; what that calls in other packages are libraries.
        Some(package) if outermost_package(report).is_some_and(|outermost| outermost != package) => told(
            OwnerKind::Sdk,
            format!("the package {package} is called by another one, and is no part of Flutter"),
        ),
        // pub's layout: a library's main file bears its name, what it has inside lies below `src`. Programs have `main.dart`.
        Some(package) if is_librarys(file, package) => {
            told(OwnerKind::Sdk, format!("{file} lies where a package keeps what makes it a library"))
        }
        Some(package) => told(
            OwnerKind::App,
            format!("nothing says whether the package {package} is the program's or a library"),
        ),
        None => told(OwnerKind::App, format!("{file} is a file of no package")),
    }
}

/// Whether a file of Dart is where packages have their library: `package:chart/chart.dart`, `package:chart/src/axis.dart`.
fn is_librarys(file: &str, package: &str) -> bool {
    let inside = file.strip_prefix("package:").and_then(|rest| rest.strip_prefix(package));
    let inside = inside.and_then(|rest| rest.strip_prefix('/')).unwrap_or_default();
    inside.starts_with("src/") || inside.strip_suffix(".dart") == Some(package)
}

/// Packages of Go's library have no dot in the first part of their path; programs are `main`, modules have a host's name.
pub(super) fn go(name: &str, file: &str) -> Ownership {
    let package = name.rsplit_once('/').map_or_else(
        || name.split('.').next().unwrap_or(name).to_owned(),
        |(before, last)| format!("{before}/{}", last.split('.').next().unwrap_or(last)),
    );
    let first = package.split('/').next().unwrap_or(&package);
    if is_go_package(first) && !file.contains("/pkg/mod/") {
        return told(OwnerKind::System, format!("{package} is a package of Go's library"));
    }
    told(OwnerKind::App, format!("{package} is neither Go's library nor a downloaded module"))
}

/// The top directories of Go's library.
fn is_go_package(name: &str) -> bool {
    const PACKAGES: [&str; 46] = [
        "archive",
        "bufio",
        "builtin",
        "bytes",
        "cmp",
        "compress",
        "container",
        "context",
        "crypto",
        "database",
        "debug",
        "embed",
        "encoding",
        "errors",
        "expvar",
        "flag",
        "fmt",
        "go",
        "hash",
        "html",
        "image",
        "index",
        "internal",
        "io",
        "iter",
        "log",
        "maps",
        "math",
        "mime",
        "net",
        "os",
        "panic",
        "path",
        "plugin",
        "reflect",
        "regexp",
        "runtime",
        "slices",
        "sort",
        "strconv",
        "strings",
        "sync",
        "syscall",
        "testing",
        "text",
        "time",
    ];
    PACKAGES.contains(&name) || matches!(name, "unicode" | "unique" | "unsafe" | "weak")
}

pub(super) fn dot_net(name: &str) -> Ownership {
    const ENGINES: [(&str, &str); 4] = [
        ("UnityEngine.", "Unity itself"),
        ("UnityEngine:", "Unity itself"),
        ("UnityEditor.", "Unity's editor"),
        ("ILRuntime.", "the interpreter ILRuntime"),
    ];
    /// Namespaces of libraries that many programs ship, as NuGet and Unity's store have them.
    const LIBRARIES: [&str; 14] = [
        "Amazon.",
        "AppLovin",
        "BestHTTP.",
        "Cysharp.",
        "DG.Tweening.",
        "Facebook.",
        "Firebase.",
        "Google.",
        "GoogleMobileAds.",
        "Newtonsoft.",
        "OneSignalSDK.",
        "Serilog.",
        "UniRx.",
        "Zenject.",
    ];
    /// Unity's runtime puts stand-ins of its own here; Mono's library has classes below its name.
    const SYSTEM: [&str; 6] = ["System.", "Microsoft.", "Interop.", "Mono.", "Replacements.", "MonoTouch."];
    let is_system = SYSTEM.iter().any(|begin| name.starts_with(begin));
    if let Some(begin) = LIBRARIES.iter().find(|begin| name.starts_with(*begin)) {
        return told(OwnerKind::Sdk, format!("classes of {begin}* are a library's, which programs ship"));
    }
    let engine = ENGINES.iter().find(|(begin, _)| name.starts_with(begin));
    match (is_system, engine) {
        (true, _) => told(OwnerKind::System, format!("{name} is of .NET's libraries")),
        (_, Some((_, what))) => told(OwnerKind::System, format!("{name} is of {what}")),
        _ => told(OwnerKind::App, format!("{name} is not of .NET's libraries")),
    }
}

pub(super) fn java(name: &str) -> Ownership {
    const JDK: [&str; 6] = ["java.", "javax.", "jdk.", "sun.", "com.sun.", "oracle."];
    match JDK.iter().find(|begin| name.starts_with(*begin)) {
        Some(begin) => told(OwnerKind::System, format!("classes of {begin}* are Java's library")),
        None => told(OwnerKind::App, format!("{name} is not of Java's library")),
    }
}

/// Whether a file is one of Node.js's own: `node:net`, and `net.js` without a directory before version 16. Programs' files have
/// their whole path.
pub(super) fn is_nodes(file: &str) -> bool {
    const FILES: [&str; 24] = [
        "_http_agent.js",
        "_http_client.js",
        "_http_common.js",
        "_http_incoming.js",
        "_http_outgoing.js",
        "_http_server.js",
        "_stream_readable.js",
        "_stream_transform.js",
        "_stream_writable.js",
        "_tls_wrap.js",
        "assert.js",
        "bootstrap_node.js",
        "buffer.js",
        "child_process.js",
        "dgram.js",
        "dns.js",
        "domain.js",
        "events.js",
        "fs.js",
        "module.js",
        "net.js",
        "stream.js",
        "timers.js",
        "zlib.js",
    ];
    file.starts_with("node:") || file.starts_with("internal/") || FILES.contains(&file)
}

/// Headers of GNU's C++ library that have code, as debuggers name them without their directory.
pub(super) const CPP_HEADERS: [&str; 40] = [
    "alloc_traits.h",
    "allocator.h",
    "atomic_base.h",
    "basic_ios.h",
    "basic_string.h",
    "basic_string.tcc",
    "char_traits.h",
    "deque.tcc",
    "exception_ptr.h",
    "hashtable.h",
    "hashtable_policy.h",
    "invoke.h",
    "istream.tcc",
    "list.tcc",
    "new_allocator.h",
    "ostream.tcc",
    "ostream_insert.h",
    "ptr_traits.h",
    "shared_ptr.h",
    "shared_ptr_base.h",
    "std_function.h",
    "std_mutex.h",
    "std_thread.h",
    "stl_algo.h",
    "stl_algobase.h",
    "stl_construct.h",
    "stl_deque.h",
    "stl_function.h",
    "stl_iterator.h",
    "stl_iterator_base_funcs.h",
    "stl_list.h",
    "stl_map.h",
    "stl_multimap.h",
    "stl_set.h",
    "stl_tree.h",
    "stl_uninitialized.h",
    "stl_vector.h",
    "unique_ptr.h",
    "unordered_map.h",
    "vector.tcc",
];
