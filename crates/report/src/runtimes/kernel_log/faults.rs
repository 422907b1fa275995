//! Lines by which the kernel says that a program got a signal for a fault.
//!
//! Sources: Linux `arch/x86/mm/fault.c` (`show_signal_msg`), `arch/x86/kernel/traps.c` (`show_signal`), `arch/arm64/kernel/traps.c`
//! (`arm64_show_signal`), `arch/arm/mm/fault.c`, `arch/riscv/kernel/traps.c`, `arch/powerpc/kernel/traps.c`, and
//! `print_vma_addr` in `mm/memory.c` for the file.

use crate::numbers::{is_number, signal};

/// What such a line tells.
#[derive(PartialEq, Eq, Debug, Default, Clone)]
pub(super) struct Fault {
    /// The thread's name, which is the program's for its first thread.
    pub(super) name: String,
    /// The thread's id.
    pub(super) id: u64,
    /// The kernel's word for it: `segfault`, `general protection fault`, `level 2 translation fault`.
    pub(super) kind: String,
    pub(super) signal: Option<&'static str>,
    pub(super) address: Option<u64>,
    pub(super) ip: Option<u64>,
    pub(super) sp: Option<u64>,
    pub(super) lr: Option<u64>,
    /// x86's error code.
    pub(super) error: Option<u64>,
    pub(super) esr: Option<u64>,
    pub(super) is_arm64: bool,
    pub(super) place: Option<MappedPlace>,
    /// The system call that was refused.
    pub(super) syscall: Option<u32>,
    /// The program's file.
    pub(super) file: Option<String>,
    /// What was tried, where the line says it in words: `read`, `write`.
    pub(super) access: Option<&'static str>,
    /// The processor: `3 (core 1, socket 0)`.
    pub(super) cpu: Option<String>,
}

/// The mapping of a file that an instruction lies in.
#[derive(PartialEq, Eq, Debug, Clone)]
pub(super) struct MappedPlace {
    pub(super) file: String,
    /// Where in the file the instruction is; newer kernels state it.
    pub(super) offset: Option<u64>,
    pub(super) start: u64,
    pub(super) size: u64,
}

impl MappedPlace {
    /// Where in the file the mapping begins, by the instruction at `ip`; unknown where the kernel states no offset.
    pub(super) fn in_file(&self, ip: Option<u64>) -> Option<u64> {
        self.offset?.checked_sub(ip?.checked_sub(self.start)?)
    }
}

impl Fault {
    /// Reads a line.
    pub(super) fn read(line: &str) -> Option<Self> {
        // This is asked of every line.
        let is_possible = line.contains("segfault")
            || line.contains(" ip:")
            || line.contains("unhandled ")
            || line.starts_with("do_page_fault")
            || ["type=1", "type=A", "type=S", "audit: ", "ANOM_", "SECCOMP"]
                .iter()
                .any(|word| line.starts_with(word))
            || line.contains(" nip ");
        if !is_possible {
            return None;
        }
        trap(line.strip_prefix("traps: ").unwrap_or(line))
            .or_else(|| segfault(line))
            .or_else(|| unhandled(line))
            .or_else(|| arm(line))
            .or_else(|| mips(line))
            .or_else(|| audited(line))
    }
}

/// `name[123]` and what stands behind it. Threads' names may have blanks in them.
fn task<'t>(line: &'t str, behind: &str) -> Option<(&'t str, u64, &'t str)> {
    /// The kernel keeps 15 bytes of a name; kernel threads and old systems may have more.
    const MAX_NAME: usize = 63;
    for (at, _) in line.match_indices(behind) {
        let (before, rest) = (line.get(..at)?, line.get(at + behind.len()..)?);
        let Some((name, digits)) = before.rsplit_once('[') else { continue };
        if is_number(digits) && !name.is_empty() && name.len() <= MAX_NAME {
            return Some((name, digits.parse().ok()?, rest));
        }
    }
    None
}

fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).ok()
}

/// ` in libx.so.1[7f12a4c30000+5e000]`, ` in libx.so.1[b1d2,7f12a4c30000+5e000]`, and what may stand behind it. `None` where
/// the text is something else.
type Tail = (Option<MappedPlace>, Option<String>);

fn tail(text: &str) -> Option<Tail> {
    let (before, cpu) = match text.split_once(" likely on CPU ") {
        Some((before, cpu)) => (before, Some(cpu.trim().to_owned())),
        None => (text, None),
    };
    let before = before.trim_end();
    let Some(inside) = before.trim_start_matches(',').strip_prefix(" in ") else {
        return before.is_empty().then_some((None, cpu));
    };
    let (file, range) = inside.strip_suffix(']')?.rsplit_once('[')?;
    let (start, size) = range.split_once('+')?;
    let (offset, start) = match start.split_once(',') {
        Some((offset, start)) => (Some(hex(offset)?), start),
        None => (None, start),
    };
    let (start, size) = (hex(start)?, hex(size)?);
    Some((Some(MappedPlace { file: file.to_owned(), offset, start, size }), cpu))
}

/// `name[1]: segfault at 10 ip 00007f12a4c3b1d2 sp 00007ffe3c1a2b40 error 4 in …`, with `rip` and `rsp` up to 2.6.28; PowerPC's
/// `name[1]: segfault (11) at 10 nip 10000abc lr 10000ab0 code 1 in …`.
///
/// People also paste it without the program.
fn segfault(line: &str) -> Option<Fault> {
    let bare = line.starts_with("segfault at ").then_some(("", 0, line));
    let (name, id, rest) = bare.or_else(|| task(line, "]: "))?;
    let (kind, rest) = rest.split_once(" at ").filter(|(kind, _)| kind.len() <= 40)?;
    let (kind, signal) = match kind.split_once(" (") {
        Some((kind, number)) => (kind, signal_of(number.strip_suffix(')')?.parse().ok()?)),
        None => (kind, (kind == "segfault").then_some("SIGSEGV")),
    };
    let (address, mut rest) = rest.split_once(' ')?;
    let mut fault = Fault {
        name: name.to_owned(),
        id,
        kind: kind.to_owned(),
        signal: Some(signal?),
        address: Some(hex(address)?),
        ..Fault::default()
    };
    loop {
        let (key, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        let (value, left) = match behind.find([' ', ',']) {
            Some(end) => behind.split_at_checked(end)?,
            None => (behind, ""),
        };
        match key {
            "ip" | "rip" | "eip" | "nip" => fault.ip = Some(hex(value)?),
            "sp" | "rsp" | "esp" => fault.sp = Some(hex(value)?),
            "lr" => fault.lr = Some(hex(value)?),
            "error" => fault.error = Some(hex(value)?),
            "code" | "(rpc" => {}
            _ => return None,
        }
        if matches!(key, "error" | "code") {
            let (place, cpu) = tail(left)?;
            fault.ip?;
            return Some(Fault { place, cpu, ..fault });
        }
        rest = left.strip_prefix(' ')?;
    }
}

/// The signals that a fault can have.
fn signal_of(number: u64) -> Option<&'static str> {
    matches!(number, 4 | 5 | 7 | 8 | 11).then(|| signal(number, true))?
}

/// What x86's `name[1] trap divide error ip:… sp:… error:0 in …` may be, and its signal.
const TRAPS: [(&str, &str); 14] = [
    ("general protection fault", "SIGSEGV"),
    ("general protection", "SIGSEGV"),
    ("control protection", "SIGSEGV"),
    ("trap invalid opcode", "SIGILL"),
    ("trap divide error", "SIGFPE"),
    ("trap int3", "SIGTRAP"),
    ("trap overflow", "SIGSEGV"),
    ("trap bounds", "SIGSEGV"),
    ("trap stack segment", "SIGBUS"),
    ("trap segment not present", "SIGBUS"),
    ("trap alignment check", "SIGBUS"),
    ("trap simd exception", "SIGFPE"),
    ("trap fpu exception", "SIGFPE"),
    ("trap invalid TSS", "SIGSEGV"),
];

fn trap(line: &str) -> Option<Fault> {
    let (name, id, rest) = task(line, "] ")?;
    let (what, rest) = rest.split_once(" ip:")?;
    let (known, signal) = TRAPS.iter().find(|(known, _)| *known == what)?;
    let (ip, rest) = rest.split_once(" sp:")?;
    let (before, rest) = rest.split_once(" error:")?;
    // Shadow stacks have a pointer of their own: `sp:… ssp:…`.
    let sp = before.split(' ').next()?;
    let end = rest.find([' ', '(']).unwrap_or(rest.len());
    let (error, rest) = rest.split_at_checked(end)?;
    let rest = match rest.strip_prefix('(') {
        Some(inside) => inside.split_once(')')?.1,
        None => rest,
    };
    let ip = Some(hex(ip)?);
    let (place, cpu) = tail(rest)?;
    Some(Fault {
        name: name.to_owned(),
        id,
        kind: known.trim_start_matches("trap ").to_owned(),
        signal: Some(signal),
        ip,
        sp: Some(hex(sp)?),
        error: Some(hex(error)?),
        place,
        cpu,
        ..Fault::default()
    })
}

/// aarch64's `name[1]: unhandled exception: DABT (lower EL), ESR 0x92000006, level 2 translation fault in …`, and up to 4.16
/// `name[1]: unhandled level 2 translation fault (11) at 0x00000010, esr 0x92000006, in …`; RISC-V's
/// `name[1]: unhandled signal 11 code 0x1 at 0x0000000000000010 in …`.
fn unhandled(line: &str) -> Option<Fault> {
    let (name, id, rest) = task(line, "]: ")?;
    let rest = rest.strip_prefix("unhandled ")?;
    let fault = Fault { name: name.to_owned(), id, ..Fault::default() };
    if let Some(rest) = rest.strip_prefix("exception: ") {
        let (what, place) = split_place(rest)?;
        let (esr, what) = match what.split_once(", ESR 0x") {
            Some((_, rest)) => {
                let (esr, what) = rest.split_once(", ")?;
                (Some(hex(esr)?), what)
            }
            None => (None, what),
        };
        let kind = what.trim().to_owned();
        let signal = signal_of_arm64(&kind);
        return Some(Fault { kind, signal, esr, is_arm64: true, place, ..fault });
    }
    if let Some(rest) = rest.strip_prefix("signal ") {
        let (number, rest) = rest.split_once(" code ")?;
        let signal = signal_of(number.parse().ok()?);
        let (_, rest) = rest.split_once(" at 0x")?;
        let (address, place) = split_place(rest)?;
        return Some(Fault {
            kind: "unhandled signal".to_owned(),
            signal: Some(signal?),
            address: Some(hex(address.trim())?),
            place,
            ..fault
        });
    }
    let (what, rest) = rest.split_once(" at 0x")?;
    let (kind, number) = what.strip_suffix(')')?.rsplit_once(" (")?;
    let (address, rest) = rest.split_once(", esr 0x")?;
    let (esr, place) = split_place(rest)?;
    Some(Fault {
        kind: kind.to_owned(),
        signal: Some(signal_of(number.parse().ok()?)?),
        address: Some(hex(address)?),
        esr: Some(hex(esr.trim_end_matches(',').trim())?),
        is_arm64: true,
        place,
        ..fault
    })
}

/// A text and the mapping that stands behind it, if one does.
fn split_place(text: &str) -> Option<(&str, Option<MappedPlace>)> {
    match text.find(" in ").and_then(|at| text.split_at_checked(at)) {
        Some((before, behind)) => Some((before, tail(behind)?.0)),
        None => Some((text, None)),
    }
}

fn signal_of_arm64(what: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 10] = [
        ("translation fault", "SIGSEGV"),
        ("permission fault", "SIGSEGV"),
        ("access flag fault", "SIGSEGV"),
        ("address size fault", "SIGSEGV"),
        ("alignment", "SIGBUS"),
        ("external abort", "SIGBUS"),
        ("undefined instruction", "SIGILL"),
        ("pointer authentication fault", "SIGILL"),
        ("branch target identification", "SIGILL"),
        ("synchronous tag check fault", "SIGSEGV"),
    ];
    WORDS.iter().find(|(word, _)| what.contains(word)).map(|(_, signal)| *signal)
}

/// 32-bit ARM's `name: unhandled page fault (11) at 0x00000010, code 0x017`.
fn arm(line: &str) -> Option<Fault> {
    let (name, rest) = line.split_once(": unhandled page fault (")?;
    let (number, rest) = rest.split_once(") at 0x")?;
    let (address, code) = rest.split_once(", code 0x")?;
    hex(code.trim())?;
    let is_name = !name.is_empty() && name.len() <= 15;
    is_name.then_some(Fault {
        name: name.to_owned(),
        kind: "page fault".to_owned(),
        signal: Some(signal_of(number.parse().ok()?)?),
        address: Some(hex(address)?),
        ..Fault::default()
    })
}

/// MIPS's `do_page_fault(): sending SIGSEGV to name for invalid read access from 0000000c`.
fn mips(line: &str) -> Option<Fault> {
    let (_, rest) = line.split_once("do_page_fault(): sending ")?;
    let (signal, rest) = rest.split_once(" to ")?;
    let signal = ["SIGSEGV", "SIGBUS"].into_iter().find(|known| *known == signal)?;
    let (name, rest) = rest.rsplit_once(" for invalid ")?;
    let (access, address) = match rest.strip_prefix("read access from ") {
        Some(address) => ("read", address),
        None => ("write", rest.strip_prefix("write access to ")?),
    };
    (name.len() <= 15).then_some(())?;
    Some(Fault {
        name: name.to_owned(),
        kind: "segfault".to_owned(),
        signal: Some(signal),
        address: Some(hex(address.trim())?),
        access: Some(access),
        ..Fault::default()
    })
}

/// A register of MIPS and the mapping that it points into: `epc = 77db6928 in libc.so[77d92000+b2000]`.
pub(super) fn mips_register(line: &str) -> Option<(&'static str, u64, Option<MappedPlace>)> {
    let (name, rest) = line.split_once('=')?;
    let name = ["epc", "ra"].into_iter().find(|known| *known == name.trim())?;
    let (value, place) = split_place(rest.trim())?;
    Some((name, hex(value.trim())?, place))
}

/// Audit's record of a program that a signal ended: `ANOM_ABEND … pid=12 comm="name" exe="/usr/bin/name" sig=11 res=1`; of one that
/// called what it may not (seccomp): `type=1326 … sig=31 … syscall=41 … ip=0x7f… code=0x0`.
fn audited(line: &str) -> Option<Fault> {
    let is_seccomp = line.contains("type=1326") || line.contains("SECCOMP ");
    let is_end =
        line.contains("ANOM_ABEND ") || line.contains("type=1701") || line.contains("type=ANOM_ABEND");
    if !is_seccomp && !is_end {
        return None;
    }
    let value = |key: &str| {
        let (_, rest) = line.split_once(key)?;
        let rest =
            rest.strip_prefix('"').map_or_else(|| rest.split(' ').next(), |rest| rest.split('"').next());
        rest.filter(|value| !value.is_empty())
    };
    let number = value(" sig=")?.parse().ok()?;
    Some(Fault {
        name: value(" comm=")?.to_owned(),
        id: value(" pid=").and_then(|pid| pid.parse().ok()).unwrap_or(0),
        kind: if is_seccomp { "seccomp" } else { "audited end" }.to_owned(),
        signal: Some(signal(number, true).filter(|_| number != 0)?),
        ip: value(" ip=").and_then(hex).filter(|_| is_seccomp),
        syscall: value(" syscall=").and_then(|number| number.parse().ok()).filter(|_| is_seccomp),
        file: value(" exe=").map(str::to_owned),
        ..Fault::default()
    })
}

/// The registers of a line that has nothing else: `pc : 0000aaaac1230b5c`, `x29: 0000ffffd0 x28: 0000000000`.
pub(super) fn registers(line: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let name = word.trim_end_matches(':');
        let is_name = (2..=4).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_name || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Vec::new();
        }
        let value = if word.ends_with(':') {
            words.next()
        } else {
            words.next().filter(|it| *it == ":").and(words.next())
        };
        let value = value.map(|value| value.trim_matches(['[', ']', '<', '>']));
        let Some(value) = value.filter(|value| value.len() >= 8).and_then(hex) else { return Vec::new() };
        found.push((name.to_owned(), value));
    }
    found
}
