//! The command line. Stable: scripts depend on it; `--help` is under snapshot test.

use crate::cmd::addr2line::{self, Addr2line};
use crate::cmd::atos::{self, Atos};
use crate::cmd::convert::Convert;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Turns addresses into answers: symbolicates, explains and attributes crash reports, without any Apple tool.
#[derive(Parser, Debug)]
#[command(name = "backtrail", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// When to colour the output.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 done, but something was not found (missing symbols are listed by id); \
2 bad input or usage.\nResults go to standard output, diagnostics to standard error.";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Symbolicate(Symbolicate),
    Explain(Explain),
    Lookup(Lookup),
    Stacks(Stacks),
    Convert(Convert),
    Images(Images),
    Cfi(Cfi),
    Demangle(Demangle),
    Addr2line(Addr2line),
    Atos(Atos),
    #[command(hide = true)]
    Generate(Generate),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless the variable NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Reads crash reports, fills in names from debug files and says what happened, where, why and in whose code.
///
/// Symbols are found by UUID or build id below every PATH: dSYM bundles, zips of them, Xcode archives, device-support
/// folders, Mach-O and ELF files, .build-id trees.
#[derive(Args, Debug)]
pub(crate) struct Symbolicate {
    /// Reports: Apple .crash or .ips. A folder means every report in it, `-` is standard input.
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    /// Where to look for symbols: a file, or a folder searched recursively. Repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: Cache,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// Write to PATH instead of standard output; a folder gets one file for each report.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// For programs; one line for each report. The schema is docs/report.schema.json.
    Json,
    /// One self-contained page.
    Html,
    /// The original report with its frames filled in, all else untouched.
    Crash,
}

/// Explains crash reports; needs no symbols.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// Reports: Apple .crash or .ips. A folder means every report in it, `-` is standard input.
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people.
    Text,
    /// For programs; one line each.
    Json,
}

/// Where tables are kept.
#[derive(Args, Debug, Default)]
pub(crate) struct Cache {
    /// Keep a table of each debug file that is asked in DIR, and ask that the next time. The first time takes as long as
    /// `convert`.
    #[arg(long = "cache", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Cache {
    pub(crate) fn tables(&self) -> Option<backtrail::TableCache> {
        self.folder.as_ref().map(backtrail::TableCache::new)
    }
}

/// Turns addresses of one binary into functions, inline chains, files and lines.
///
/// Addresses are hexadecimal, with or without 0x. They are looked up as they are: for a return address pass the
/// address minus one.
#[derive(Args, Debug)]
pub(crate) struct Lookup {
    /// The binary, dSYM bundle or debug file.
    #[arg(short = 'e', long = "exe", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where to look for its debug file, table or symbol file, by its identity: a file, or a folder searched recursively.
    /// Repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: Cache,
    /// Which slice of a fat file.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Addresses are of a process that has the file mapped at X.
    #[arg(long, value_name = "X", value_parser = parse_address, conflicts_with = "slide")]
    pub(crate) load_address: Option<u64>,
    /// Addresses are of a process that has the file mapped X bytes above its stated address.
    #[arg(long, value_name = "X", value_parser = parse_address)]
    pub(crate) slide: Option<u64>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = LookupFormat::Text)]
    pub(crate) format: LookupFormat,
    /// The addresses; read from standard input, one a line, where none are given.
    #[arg(value_name = "ADDR")]
    pub(crate) addresses: Vec<String>,
}

/// Shows what every thread of a captured process was doing: from a core, a minidump or a saved stack.
///
/// Binaries and debug files are found by build id below every PATH and in the system's debug folders, or where the process
/// had them. Threads with the same stack are shown once.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["core", "minidump", "offline"])))]
pub(crate) struct Stacks {
    /// The core dump of a Linux process: x86, x86_64, ARM or ARM64.
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<PathBuf>,
    /// The program that the core is of, where it is not to be found by its path or build id.
    // `requires` alone says nothing where another member of the group is given.
    #[arg(short = 'e', long = "exe", value_name = "EXE", requires = "core", conflicts_with_all = ["minidump", "offline"])]
    pub(crate) executable: Option<PathBuf>,
    /// A minidump of Breakpad, Crashpad or Windows.
    #[arg(long, value_name = "F")]
    pub(crate) minidump: Option<PathBuf>,
    /// A saved stack in the layout of libunwindstack's offline cases: regs.txt, maps.txt, *.data, binaries.
    #[arg(long, value_name = "DIR")]
    pub(crate) offline: Option<PathBuf>,
    /// Where to look for binaries and symbols: a file, or a folder searched recursively. Repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: Cache,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = StackFormat::Text)]
    pub(crate) format: StackFormat,
    /// Show each thread, also where several have the same stack.
    #[arg(long)]
    pub(crate) no_fold: bool,
    /// Frames of a thread at most.
    #[arg(long, value_name = "N")]
    pub(crate) max_frames: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StackFormat {
    /// For people.
    Text,
    /// For programs. The schema is in docs/report.schema.json.
    Json,
    /// A line for each distinct stack: frames, outermost first, joined by semicolons, and how many threads had it.
    Collapsed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LookupFormat {
    /// For people.
    Text,
    /// For programs; one line each.
    Json,
    /// As llvm-symbolizer prints it.
    Llvm,
    /// As llvm-symbolizer --output-style=JSON prints it.
    LlvmJson,
}

/// Shows what binaries hold: slices, identities, segments, load commands, debug info.
#[derive(Args, Debug)]
pub(crate) struct Images {
    /// Mach-O or ELF files, archives, dSYM bundles.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

/// Shows unwind tables: for each function where the caller's frame, return address and registers are, from DWARF CFI
/// (.eh_frame, .debug_frame), Apple's compact unwind information and ARM's exception index; then the code that none
/// of them covers.
///
/// CFA is the stack pointer before the call; [CFA-8] is what lies 8 bytes below it. Registers that keep their value
/// are left out.
#[derive(Args, Debug)]
pub(crate) struct Cfi {
    /// A Mach-O or ELF file, or a dSYM bundle.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only what holds at this address.
    #[arg(long, value_name = "A", value_parser = parse_address, conflicts_with = "function")]
    pub(crate) address: Option<u64>,
    /// Only this function, by its linkage name or its readable name, with or without parameters.
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// Which slice of a fat file; all of them if not given.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

/// Makes C++, Swift, Rust, Objective-C, D and Microsoft names readable.
///
/// Names are given as arguments; without any, standard input is copied with every name in it made readable. The options
/// are those of c++filt, llvm-cxxfilt and swift demangle.
#[derive(Args, Debug)]
pub(crate) struct Demangle {
    /// The names; standard input is filtered where none are given.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Leave out parameters and return types.
    #[arg(short = 'p', long)]
    pub(crate) no_params: bool,
    /// Leave out return types.
    #[arg(long)]
    pub(crate) no_return_types: bool,
    /// Swift names in the short form that Xcode shows.
    #[arg(long)]
    pub(crate) simplified: bool,
    /// Swift types in full: Array<Int> rather than [Int].
    #[arg(long)]
    pub(crate) no_sugar: bool,
    /// Also read words that are no names, but mangled C++ types.
    #[arg(short, long)]
    pub(crate) types: bool,
    /// Read names of one scheme only.
    #[arg(short = 's', long, value_enum, default_value_t = Mangling::Auto)]
    pub(crate) format: Mangling,
    /// Every name has an underscore in front, as Mach-O writes it.
    #[arg(short = '_', long, overrides_with = "no_strip_underscore")]
    pub(crate) strip_underscore: bool,
    /// No name has an underscore in front; without either option one more is ignored.
    #[arg(short = 'n', long, overrides_with = "strip_underscore")]
    pub(crate) no_strip_underscore: bool,
    /// Put readable names in double quotes, unless they stand in some.
    #[arg(long)]
    pub(crate) quote: bool,
    /// Cut longer readable names where the cut can be seen.
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_length: Option<usize>,
    /// Fold template arguments nested deeper: with 1, A<B<...>>.
    #[arg(long, value_name = "DEPTH")]
    pub(crate) fold_depth: Option<u32>,
    /// Fold template argument lists longer than this.
    #[arg(long, value_name = "BYTES")]
    pub(crate) fold_length: Option<usize>,
    /// Always so here, as are -r, -R and --compact: taken for the sake of other tools' users.
    #[arg(short = 'i', long)]
    pub(crate) no_verbose: bool,
    #[arg(short = 'R', long, hide = true)]
    pub(crate) recurse_limit: bool,
    #[arg(short = 'r', long, alias = "no-recursion-limit", hide = true)]
    pub(crate) no_recurse_limit: bool,
    #[arg(long, hide = true)]
    pub(crate) compact: bool,
}

/// How names are mangled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Mangling {
    /// Any of the others.
    Auto,
    /// No name is read.
    None,
    /// C++ of clang, gcc and most others.
    #[value(alias = "gnu-v3", alias = "gnu")]
    Itanium,
    /// Swift of every generation.
    Swift,
    /// Rust, legacy and v0.
    Rust,
    /// D.
    Dlang,
    /// Objective-C.
    Objc,
    /// C++ of Microsoft.
    Msvc,
}

/// Writes the man pages or a shell's completions.
#[derive(Args, Debug)]
pub(crate) struct Generate {
    /// What to write.
    #[arg(value_enum)]
    pub(crate) what: Generated,
    /// Into which folder.
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Generated {
    /// One page for each command.
    Man,
    /// Completions for every shell.
    Completions,
}

/// A tool that the program stands in for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrontEnd {
    /// GNU's.
    Addr2line,
    /// Apple's.
    Atos,
}

impl FrontEnd {
    const ALL: [Self; 2] = [Self::Addr2line, Self::Atos];

    /// The tool's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Addr2line => "addr2line",
            Self::Atos => "atos",
        }
    }

    /// The tool that the program was called as: through a link of that name, also with a cross compiler's prefix
    /// (`aarch64-linux-gnu-addr2line`), or by the command of that name.
    pub(crate) fn of(words: &[String]) -> Option<(Self, Call)> {
        let name = std::path::Path::new(words.first()?).file_stem()?.to_str()?;
        let is_called = |tool: &Self| {
            name.strip_suffix(tool.name()).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('-'))
        };
        if let Some(tool) = Self::ALL.into_iter().find(is_called) {
            return Some((tool, Call::ByName));
        }
        let command = words.get(1)?;
        Self::ALL.into_iter().find(|tool| command == tool.name()).map(|tool| (tool, Call::ByCommand))
    }

    /// The tool's own words as the command line of its command.
    pub(crate) fn words(self, call: Call, words: Vec<String>) -> Vec<String> {
        let own = match call {
            Call::ByName => 1,
            Call::ByCommand => 2,
        };
        let rest = words.into_iter().skip(own).collect();
        let rest = match self {
            Self::Addr2line => addr2line::expand(rest),
            Self::Atos => atos::with_two_dashes(rest),
        };
        ["backtrail".to_owned(), self.name().to_owned()].into_iter().chain(rest).collect()
    }
}

/// How a front end was called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    ByName,
    ByCommand,
}

/// Reads a hexadecimal number with or without `0x`.
pub(crate) fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map_err(|_| format!("expected a hexadecimal address of at most 64 bits, got {text:?}"))
}
