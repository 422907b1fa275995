//! Frames of reports that state where code is in its file, instead of in the process.

use crate::image_symbolizer::ImageSymbolizer;
use backtrail_core::{Arch, Avma, FileOffset, FrameAddress, Svma};
use backtrail_model::{Frame, Image};

/// What a frame states.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InFile {
    /// An address as the file states them.
    Address(Svma),
    /// An offset in the file.
    Offset(FileOffset),
    /// An offset in the mapping of its code, and that mapping's size.
    Mapped { into: u64, size: u64 },
}

impl InFile {
    pub(crate) fn of(frame: &Frame, image: &Image) -> Option<Self> {
        let address = frame.relative_pc.map(Self::Address);
        address.or(frame.file_offset.map(Self::Offset)).or_else(|| {
            let mapping = image.code_mapping?;
            let code = frame.address?.lookup(image.arch.unwrap_or(Arch::Unknown));
            let into = code.offset_from(mapping.start()).filter(|_| mapping.contains(code))?;
            Some(Self::Mapped { into, size: mapping.size() })
        })
    }

    /// The address to look up. Which of the two a report states follows from its version; libraries that unwind within the
    /// app may differ from the system. So where only the other reading agrees with the function that the report names, that
    /// is the one.
    pub(crate) fn address(self, frame: &Frame, open: &ImageSymbolizer, arch: Arch) -> Option<Svma> {
        let code = |value: u64| Svma::new(FrameAddress::Exact(Avma::new(value)).lookup(arch).get());
        let (first, other) = match self {
            Self::Address(address) => {
                let address = code(address.get());
                (Some(address), svma_of(open, FileOffset::new(address.get())))
            }
            Self::Offset(offset) => {
                let value = code(offset.get());
                (svma_of(open, FileOffset::new(value.get())), Some(value))
            }
            Self::Mapped { into, size } => return svma_of_mapped(open, into, size),
        };
        let (Some(first), Some(other)) = (first, other) else { return first.or(other) };
        let Some(reported) = frame.reported.as_ref().filter(|_| first != other) else { return Some(first) };
        let agrees = |address| {
            let symbol = open.enclosing_function(address);
            symbol.is_some_and(|symbol| is_same(&symbol.name, &reported.name))
        };
        Some(if !agrees(first) && agrees(other) { other } else { first })
    }
}

/// The stated address of what is at an offset of the binary.
fn svma_of(open: &ImageSymbolizer, offset: FileOffset) -> Option<Svma> {
    let objects = open.given_files().iter().filter_map(|file| file.object());
    let mut segments = objects.flat_map(backtrail_object::Object::segments);
    let segment = segments.find(|segment| segment.executable && segment.file.contains(offset))?;
    let into = offset.offset_from(segment.file.start())?;
    segment.address.start().checked_add(into)
}

/// The stated address of what is in the mapping of the code. The mapping has to be of the size that one of the binary's
/// segments takes in pages: else the file is of another build.
fn svma_of_mapped(open: &ImageSymbolizer, into: u64, size: u64) -> Option<Svma> {
    /// Sizes of pages of Linux's processors.
    const PAGES: [u64; 3] = [0x1000, 0x4000, 0x1_0000];
    let objects = open.given_files().iter().filter_map(|file| file.object());
    let mut segments =
        objects.flat_map(backtrail_object::Object::segments).filter(|segment| segment.executable);
    segments.find_map(|segment| {
        let (start, end) = (segment.address.start().get(), segment.address.end().get());
        PAGES.iter().find_map(|page| {
            let begin = start & !(page - 1);
            let takes = end.checked_add(page - 1)? & !(page - 1);
            (takes.checked_sub(begin)? == size).then(|| Svma::new(begin).checked_add(into))?
        })
    })
}

/// Whether two readable names are of one function: parameters and compilers' suffixes apart.
fn is_same(one: &str, other: &str) -> bool {
    base(one) == base(other)
}

fn base(name: &str) -> String {
    let name = name.replace("(anonymous namespace)", "{anonymous}");
    let end = name.find(['(', '<']).filter(|end| *end > 0).unwrap_or(name.len());
    let name = name.get(..end).unwrap_or(&name);
    let name = name.split(".llvm.").next().unwrap_or(name);
    // What a function gives stands before its name in some writers' words.
    let name = name.rsplit(' ').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).to_owned()
}

/// A file that was taken by its name may be of another build. Where the report names another function than the file has at
/// that place, it is: nothing that it says of the frame is used.
pub(crate) fn refuse_contradiction(frame: &mut Frame, images: &mut [Image]) {
    let Some(image) = frame.image.and_then(|position| images.get_mut(position)) else { return };
    let Some(reported) = frame.reported.as_ref().filter(|_| image.symbols.is_unproven) else { return };
    let outermost = frame.functions.last().map(|function| function.name.as_str());
    let Some(found) = outermost.or(frame.symbol.as_ref().map(|symbol| symbol.name.as_str())) else { return };
    if is_same(found, &reported.name) {
        return;
    }
    let what = format!(
        "{}: another build? It has {found} where the report has {}",
        image.symbols.files.join(", "),
        reported.name
    );
    if !image.symbols.tried.contains(&what) && image.symbols.tried.len() < MAX_TOLD {
        image.symbols.tried.push(what);
    }
    frame.functions.clear();
    (frame.symbol, frame.function_offset, frame.owner) = (None, None, None);
}

/// Contradictions of one image that are told.
const MAX_TOLD: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_function() {
        for (one, other) in [
            ("crash(int)", "crash"),
            ("art::(anonymous namespace)::Check(int)", "Check"),
            ("void f<int>(int)", "f"),
            ("ns::f(int) const", "ns::f"),
            ("f.llvm.123", "f"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        assert!(!is_same("crash", "crash2"));
    }
}
