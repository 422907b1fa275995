//! The C++ exception that ended a process, as its memory has it: its type, and what it says.
//!
//! The runtime keeps the exceptions that a thread is handling in a list whose head is thread-local
//! (`__cxa_eh_globals::caughtExceptions`; Itanium C++ ABI, "Exception Handling", 2.2.2). One that nobody catches is put there before
//! `std::terminate` is called. No symbol tells where the head lies: it is the word of the thread's local storage that points to what
//! is an exception in every part, down to the type of its type.

use crate::loaded_image::LoadedImage;
use crate::process_memory::text_at;
use backtrail_core::{AddrRange, Arch, Avma, ReadMemory, Trust};
use backtrail_model::Frame;
use backtrail_object::Symbol;

/// An exception, as its runtime has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CppException {
    /// What `std::type_info::name` gives: mangled.
    pub(crate) type_name: String,
    /// The text of a `std::runtime_error` or `std::logic_error` in it, or what was thrown itself where that is a text or a number.
    pub(crate) what: Option<String>,
}

/// Bytes of local storage that are looked through: before and behind the thread pointer, and of each library that was loaded later.
const NEAR: usize = 16 << 10;
const OF_LIBRARY: usize = 1 << 10;
/// Libraries with local storage.
const MAX_LIBRARIES: usize = 256;
/// Bytes of a type's name and of a text. Mangled names have some hundreds.
const MAX_NAME: usize = 4096;
const MAX_TEXT: usize = 4096;
/// Bases of bases, and all of them together.
const MAX_DEPTH: u32 = 16;
const MAX_BASES: u32 = 256;

/// How a runtime describes an exception (`__cxa_exception`) on 64 bits.
struct Layout {
    /// `exception_class`, as a number.
    class: u64,
    /// Where the exception's type stands.
    type_info: u64,
    /// Where one that stands for another (`std::rethrow_exception`) says which object it is about.
    primary: u64,
}

/// gcc, `libstdc++-v3/libsupc++/unwind-cxx.h`; LLVM, `libcxxabi/src/cxa_exception.h`.
const LAYOUTS: [Layout; 2] = [
    Layout { class: u64::from_be_bytes(*b"GNUCC++\0"), type_info: 0, primary: 0 },
    Layout { class: u64::from_be_bytes(*b"CLNGC++\0"), type_info: 16, primary: 8 },
];
/// From the type to `_Unwind_Exception`, which begins with the class, and from there to what was thrown.
const TO_UNWIND_HEADER: u64 = 80;
const UNWIND_HEADER: u64 = 32;

/// The functions that call `std::terminate` where an exception is not caught, the personality of functions included. They run nothing
/// of the program's but a handler of `std::terminate`, so that a thread within one of them ends for its exception.
const THROWING: [&str; 7] = [
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_call_terminate",
    "__clang_call_terminate",
    "__gxx_personality_v0",
    // `std::rethrow_exception` of gcc's library and of LLVM's.
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
    "_ZSt17rethrow_exceptionSt13exception_ptr",
];
/// What these call, and what calls the handler. Names are as compiled.
const TERMINATING: [&str; 3] =
    ["_ZSt9terminatev", "_ZN10__cxxabiv111__terminateEPFvvE", "_ZSt11__terminatePFvvE"];
/// Frames from the innermost one on among which they are: a handler of `std::terminate` has its own.
const MAX_FRAMES: usize = 32;

/// Whether a thread ends for an exception that nobody caught. One that did not abort is within the handler, or what the exception says of
/// itself.
pub(crate) fn is_uncaught(frames: &[Frame], images: &[LoadedImage], arch: Arch, is_abort: bool) -> bool {
    is_within(frames, images, arch, &THROWING) && (is_abort || is_within(frames, images, arch, &TERMINATING))
}

/// Whether one of these functions is on a stack.
fn is_within(frames: &[Frame], images: &[LoadedImage], arch: Arch, functions: &[&str]) -> bool {
    let mut known: Vec<(usize, Vec<AddrRange<Avma>>)> = Vec::new();
    frames.iter().take(MAX_FRAMES).take_while(|frame| frame.trust != Trust::Scan).any(|frame| {
        let (Some(image), Some(address)) = (frame.image, frame.address) else { return false };
        let at = known.iter().position(|(shown, _)| *shown == image).unwrap_or_else(|| {
            let of_image = images.iter().filter(|loaded| loaded.shown == image);
            known.push((image, of_image.flat_map(|image| ranges(image, functions)).collect()));
            known.len() - 1
        });
        let address = address.lookup(arch);
        known.get(at).is_some_and(|(_, ranges)| ranges.iter().any(|range| range.contains(address)))
    })
}

/// Where these functions lie in an image.
fn ranges(image: &LoadedImage, functions: &[&str]) -> Vec<AddrRange<Avma>> {
    let range = |symbol: &Symbol<'_>| {
        let is_one = symbol.is_code && functions.contains(&&*symbol.name);
        let start = is_one.then(|| image.bias.to_avma(symbol.address)).flatten()?;
        Some(AddrRange::new(start, start.checked_add(symbol.size?)?))
    };
    let objects = image.files.unwinding().filter_map(|file| file.object());
    objects
        .flat_map(|object| object.symbols().unwrap_or_default())
        .filter_map(|symbol| range(&symbol))
        .collect()
}

/// The exception that the thread with this thread pointer was handling last; of 64 bits only.
pub(crate) fn current(memory: &impl ReadMemory, thread_pointer: Avma) -> Option<CppException> {
    let runtime = Runtime { memory };
    let found = local_storage(memory, thread_pointer).find_map(|word| runtime.exception(word));
    let (type_info, object) = found?;
    let type_name = runtime.type_name(type_info)?;
    let what = runtime.what(&type_name, type_info, object);
    Some(CppException { type_name, what })
}

/// The words of a thread's local storage. Where it lies: Drepper, "ELF Handling For Thread-Local Storage". Of programs and the libraries
/// that they begin with it lies before the thread pointer (x86) or behind it (ARM); of others, where the thread's vector of pointers
/// says, which the second word (x86) or the first one leads to.
fn local_storage(memory: &impl ReadMemory, thread_pointer: Avma) -> impl Iterator<Item = u64> + '_ {
    let around = [thread_pointer.get().saturating_sub(NEAR as u64), thread_pointer.get()];
    let near = around.into_iter().flat_map(|start| words(memory, Avma::new(start), NEAR));
    let vectors = [8, 0].into_iter().filter_map(move |offset| {
        let vector = memory.read_u64(thread_pointer.checked_add(offset)?).ok()?;
        (vector != 0 && vector != thread_pointer.get()).then_some(Avma::new(vector))
    });
    // An entry has one word (musl) or two (glibc).
    let blocks = vectors.flat_map(move |vector| words(memory, vector, MAX_LIBRARIES * 16));
    let blocks = blocks.filter(|block| *block >= PAGE && block % 8 == 0);
    near.chain(blocks.flat_map(|block| words(memory, Avma::new(block), OF_LIBRARY)))
}

/// Nothing lies below the second page.
const PAGE: u64 = 4096;

/// The words from `start` on that can be read, but for those in pages that cannot.
fn words(memory: &impl ReadMemory, start: Avma, size: usize) -> impl Iterator<Item = u64> {
    let mut all = Vec::new();
    let mut at = start.get() & !7;
    let end = start.get().saturating_add(size as u64);
    while at < end {
        let until = (at | (PAGE - 1)).saturating_add(1).min(end);
        let mut bytes = vec![0; usize::try_from(until - at).unwrap_or_default()];
        // What was saved of a page may end within it.
        if memory.read(Avma::new(at), &mut bytes).is_ok() {
            all.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
        }
        at = until;
    }
    all.into_iter()
}

struct Runtime<'m, M> {
    memory: &'m M,
}

impl<M: ReadMemory> Runtime<'_, M> {
    fn word(&self, at: u64, offset: u64) -> Option<u64> {
        self.memory.read_u64(Avma::new(at.checked_add(offset)?)).ok()
    }

    /// Type and address of the exception that a word points to the description of.
    fn exception(&self, description: u64) -> Option<(u64, u64)> {
        if description < PAGE || !description.is_multiple_of(16) {
            return None;
        }
        LAYOUTS.iter().find_map(|layout| {
            let header = description.checked_add(layout.type_info + TO_UNWIND_HEADER)?;
            let class = self.word(header, 0)?;
            let object = if class == layout.class {
                header.checked_add(UNWIND_HEADER)?
            } else if class == layout.class + 1 {
                self.word(description, layout.primary)?
            } else {
                return None;
            };
            let type_info = self.word(object.checked_sub(TO_UNWIND_HEADER + UNWIND_HEADER)?, 0)?;
            self.kind(type_info)?;
            Some((type_info, object))
        })
    }

    /// Which of the ABI's classes describes a type (`N10__cxxabiv1…`): what lies before its table of functions is the type of a type.
    /// `None` where it is no description of a type.
    fn kind(&self, type_info: u64) -> Option<String> {
        let own_type = self.word(self.word(type_info, 0)?.checked_sub(8)?, 0)?;
        let kind = self.text(self.word(own_type, 8)?, MAX_NAME)?;
        kind.strip_prefix("N10__cxxabiv1").map(str::to_owned)
    }

    fn type_name(&self, type_info: u64) -> Option<String> {
        let name = self.text(self.word(type_info, 8)?, MAX_NAME)?;
        // gcc marks the names of types that are no one else's.
        let name = name.strip_prefix('*').unwrap_or(&name).to_owned();
        (!name.is_empty()).then_some(name)
    }

    /// Text up to its end. `None` where there is none, or it is too long.
    fn text(&self, at: u64, most: usize) -> Option<String> {
        let (text, is_ended) = text_at(self.memory, Avma::new(at), most)?;
        is_ended.then_some(text)
    }

    fn what(&self, name: &str, type_info: u64, object: u64) -> Option<String> {
        let signed = |value: u64| i64::from_le_bytes(value.to_le_bytes()).to_string();
        let int = || self.memory.read_u32(Avma::new(object)).ok();
        match name {
            "PKc" | "Pc" => return self.text(self.word(object, 0)?, MAX_TEXT),
            "i" => return int().map(|value| i32::from_le_bytes(value.to_le_bytes()).to_string()),
            "j" => return int().map(|value| value.to_string()),
            "l" | "x" => return self.word(object, 0).map(signed),
            "m" | "y" => return self.word(object, 0).map(|value| value.to_string()),
            // gcc's: a pointer and a size.
            "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE" => {
                let size = usize::try_from(self.word(object, 8)?).ok().filter(|size| *size <= MAX_TEXT)?;
                let mut text = vec![0; size];
                self.memory.read(Avma::new(self.word(object, 0)?), &mut text).ok()?;
                return Some(String::from_utf8_lossy(&text).into_owned());
            }
            _ => {}
        }
        let words = self.words_of(type_info, object, 0, &mut 0)?;
        // Behind the table of functions both runtimes have a pointer to the text.
        self.text(self.word(words, 8)?, MAX_TEXT).filter(|text| !text.is_empty())
    }

    /// Where in an object its `std::runtime_error` or `std::logic_error` begins. Itanium C++ ABI, 2.9.5 for the layout of types.
    fn words_of(&self, type_info: u64, object: u64, depth: u32, seen: &mut u32) -> Option<u64> {
        *seen += 1;
        if depth > MAX_DEPTH || *seen > MAX_BASES {
            return None;
        }
        let name = self.type_name(type_info)?;
        // LLVM's, too, lie in `std` itself.
        if matches!(&*name, "St13runtime_error" | "St11logic_error") {
            return Some(object);
        }
        match &*self.kind(type_info)? {
            "20__si_class_type_infoE" => self.words_of(self.word(type_info, 16)?, object, depth + 1, seen),
            "21__vmi_class_type_infoE" => {
                let count = self.memory.read_u32(Avma::new(type_info.checked_add(20)?)).ok()?;
                (0..u64::from(count).min(MAX_BASES.into())).find_map(|index| {
                    let entry = type_info.checked_add(24 + index * 16)?;
                    let base = self.base(object, self.word(entry, 8)?)?;
                    self.words_of(self.word(entry, 0)?, base, depth + 1, seen)
                })
            }
            _ => None,
        }
    }

    /// Where a base lies in an object. Of a virtual one the table of functions has the offset.
    fn base(&self, object: u64, flags: u64) -> Option<u64> {
        const VIRTUAL: u64 = 1;
        let offset = i64::from_le_bytes(flags.to_le_bytes()) >> 8;
        if flags & VIRTUAL == 0 {
            return object.checked_add_signed(offset);
        }
        let table = self.word(object, 0)?.checked_add_signed(offset)?;
        let offset = self.word(table, 0)?;
        object.checked_add_signed(i64::from_le_bytes(offset.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests;
