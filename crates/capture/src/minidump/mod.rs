//! Minidumps: what Breakpad, Crashpad and Windows write of a crashed process. The crate `minidump` takes the file apart;
//! this module says what its streams mean here. Microsoft, `minidumpapiset.h`; Breakpad, `minidump_format.h`.

mod modules;
mod threads;
mod write;

#[cfg(test)]
mod tests;

pub use write::write;

use crate::elf_core::signals::is_fault;
use crate::{Error, ErrorKind, Fault, Limits, Mapping, Memory, Process, Snapshot, Source, parse_maps};
use backtrail_core::{AddrRange, Arch, Avma, FileOffset};
use minidump::system_info::{Cpu, Os};
use minidump::{
    Minidump, MinidumpException, MinidumpMemoryInfoList, MinidumpMiscInfo, MinidumpSystemInfo,
    MinidumpThreadList,
};
use std::borrow::Cow;

/// Breakpad's streams of the files in `/proc/PID`.
const LINUX_CMD_LINE: u32 = 0x4767_0006;
const LINUX_MAPS: u32 = 0x4767_0009;

/// Whether these bytes begin like a minidump.
pub fn is_minidump(data: &[u8]) -> bool {
    data.starts_with(b"MDMP") || data.starts_with(b"PMDM")
}

/// A file taken apart, and what the rest of it is read by.
struct Dump<'a, 'd> {
    file: &'a Minidump<'a, &'d [u8]>,
    data: &'d [u8],
    system: MinidumpSystemInfo,
    misc: Option<MinidumpMiscInfo>,
    arch: Arch,
}

/// Reads a minidump.
///
/// # Errors
/// For what is none, for other processors than x86, `x86_64`, ARM and ARM64, and where the streams that say what the
/// machine was and which threads there were are missing or broken.
pub fn read<'d>(data: &'d [u8], limits: &Limits) -> Result<Snapshot<'d>, Error> {
    let file = Minidump::read(data).map_err(|error| unreadable(data, &error))?;
    let system: MinidumpSystemInfo =
        file.get_stream().map_err(|error| missing("the system's description", &error))?;
    let arch = arch_of(system.cpu).ok_or_else(|| {
        Error::new(
            ErrorKind::Unsupported,
            format!("a minidump of {}; only x86, x86_64, ARM and ARM64 are read", system.cpu),
        )
    })?;
    let threads: MinidumpThreadList<'_> =
        file.get_stream().map_err(|error| missing("the list of threads", &error))?;
    let misc = file.get_stream().ok();
    let dump = Dump { file: &file, data, system, misc, arch };
    let mut notes = Vec::new();
    let exception: Option<MinidumpException<'_>> = file.get_stream().ok();
    let threads = threads::read(&dump, &threads, exception.as_ref(), limits, &mut notes);
    let images = modules::read(&dump, limits, &mut notes);
    let mappings = dump.mappings(limits);
    let executable = images.iter().find(|image| image.is_executable).map(|image| image.path.clone());
    Ok(Snapshot {
        source: Source::Minidump,
        arch,
        process: Process { executable, ..dump.process(limits) },
        fault: exception.map(|exception| dump.fault(&exception)),
        threads: threads.threads,
        images,
        mappings,
        memory: dump.memory(threads.stacks, limits, &mut notes),
        pointer_authentication: None,
        notes,
    })
}

fn unreadable(data: &[u8], error: &minidump::Error) -> Error {
    match error {
        minidump::Error::HeaderMismatch | minidump::Error::MissingHeader if !is_minidump(data) => {
            Error::at(ErrorKind::Unrecognized, 0, "expected a minidump, which begins with `MDMP`")
        }
        minidump::Error::MissingHeader | minidump::Error::MissingDirectory => {
            let message = format!("the minidump ends inside of its header or stream directory ({error})");
            Error::at(ErrorKind::Truncated, data.len() as u64, message)
        }
        _ => Error::new(ErrorKind::Malformed, format!("the minidump's header is broken: {error}")),
    }
}

fn missing(what: &str, error: &minidump::Error) -> Error {
    Error::new(ErrorKind::Malformed, format!("expected {what} in the minidump: {error}"))
}

fn arch_of(cpu: Cpu) -> Option<Arch> {
    match cpu {
        Cpu::X86 => Some(Arch::X86),
        Cpu::X86_64 => Some(Arch::X86_64),
        Cpu::Arm => Some(Arch::Arm),
        Cpu::Arm64 => Some(Arch::Arm64),
        _ => None,
    }
}

impl<'d> Dump<'_, 'd> {
    /// The same bytes, as a part of the file's: what the crate gives does not outlive its own structures.
    fn part(&self, bytes: &[u8]) -> &'d [u8] {
        let start = (bytes.as_ptr().addr()).checked_sub(self.data.as_ptr().addr());
        start.and_then(|start| self.data.get(start..start.checked_add(bytes.len())?)).unwrap_or_default()
    }

    fn process(&self, limits: &Limits) -> Process {
        let command_line = self.file.get_raw_stream(LINUX_CMD_LINE).ok().map(|bytes| {
            let bytes = bytes.get(..limits.name_bytes).unwrap_or(bytes);
            String::from_utf8_lossy(bytes).trim_end_matches('\0').replace('\0', " ")
        });
        let (version, build) = self.system.os_parts();
        let build = build.map(|build| format!(" {build}")).unwrap_or_default();
        Process {
            pid: self.misc.as_ref().and_then(|misc| misc.raw.process_id().copied()).map(u64::from),
            command_line: command_line.filter(|line| !line.is_empty()),
            os: Some(format!("{} {version}{build}", self.system.os.long_name()).trim().to_owned()),
            time: Some(u64::from(self.file.header.time_date_stamp)).filter(|time| *time != 0),
            ..Process::default()
        }
    }

    fn fault(&self, exception: &MinidumpException<'_>) -> Fault {
        if matches!(self.system.os, Os::Linux | Os::Android)
            && let Some(fault) = self.signal(exception)
        {
            return fault;
        }
        let reason = exception.get_crash_reason(self.system.os, self.system.cpu).to_string();
        let (name, code) = match reason.split_once(" / ") {
            Some((name, code)) => (name.to_owned(), Some(code.to_owned())),
            None => (reason, None),
        };
        let record = &exception.raw.exception_record;
        let address = exception.get_crash_address(self.system.os, self.system.cpu);
        Fault {
            name,
            number: u64::from(record.exception_code),
            code,
            address: Some(Avma::new(address)),
            sender: None,
        }
    }

    /// The signal of a Linux process: Breakpad's and crashpad's `exception_flags` are its `si_code`. `None` where no signal has that
    /// number, as where somebody asked for the dump.
    fn signal(&self, exception: &MinidumpException<'_>) -> Option<Fault> {
        let record = &exception.raw.exception_record;
        let number = u64::from(record.exception_code);
        let code = record.exception_flags.cast_signed();
        let address = Avma::new(exception.get_crash_address(self.system.os, self.system.cpu));
        let address = (code == 0 && is_fault(number, 1) || is_fault(number, code)).then_some(address);
        // 0 is `SI_USER`, and what older writers have for any: Breakpad's of 2017 for a write to address 0x45.
        let fault = Fault::of_signal(number, code, address, None);
        (1..=64).contains(&number).then(|| Fault { code: fault.code.filter(|_| code != 0), ..fault })
    }

    /// Saved memory: the threads' stacks and what else the writer thought of. Full dumps have all of it.
    fn memory(&self, stacks: Vec<(Avma, &'d [u8])>, limits: &Limits, notes: &mut Vec<String>) -> Memory<'d> {
        let list = self.file.get_memory();
        if list.is_none() {
            notes.push("the minidump has no list of memory; only the threads' stacks are there".to_owned());
        }
        let list = list.unwrap_or_default();
        let saved = list.iter().take(limits.mappings);
        let saved: Vec<_> =
            saved.map(|piece| (Avma::new(piece.base_address()), self.part(piece.bytes()))).collect();
        Memory::new(saved.into_iter().chain(stacks).map(|(start, bytes)| (start, Cow::Borrowed(bytes))))
    }

    /// What was mapped: Linux's own list, or Windows'.
    fn mappings(&self, limits: &Limits) -> Vec<Mapping> {
        if let Ok(maps) = self.file.get_raw_stream(LINUX_MAPS) {
            return parse_maps(maps, limits.mappings).0;
        }
        let Ok(list) = self.file.get_stream::<MinidumpMemoryInfoList<'_>>() else { return Vec::new() };
        let mapping = |info: &minidump::MinidumpMemoryInfo<'_>| {
            let range = info.memory_range()?;
            Some(Mapping {
                range: AddrRange::new(Avma::new(range.start), Avma::new(range.end.saturating_add(1))),
                offset: FileOffset::new(0),
                readable: info.is_readable(),
                writable: info.is_writable(),
                executable: info.is_executable(),
                name: String::new(),
            })
        };
        let mut mappings: Vec<_> = list.iter().take(limits.mappings).filter_map(mapping).collect();
        mappings.sort_by_key(|mapping| mapping.range.start());
        mappings
    }

    fn is_apple(&self) -> bool {
        matches!(self.system.os, Os::MacOs | Os::Ios)
    }
}
