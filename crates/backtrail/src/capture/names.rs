//! Names for captured frames.

use super::file::data;
use super::open;
use super::{Capturer, RawStack};
use crate::open_image::OpenImage;
use crate::stacks::{Finder, of_function};
use crate::{Frame, Symbols};
use backtrail_capture::Image;
use backtrail_capture::local::LoadedImage;
use backtrail_core::{Arch, FrameAddress, Reason};
use std::sync::{Arc, Mutex, PoisonError};

/// Images that were opened for naming, with what could not be.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<Vec<(open::Key, Option<Arc<OpenImage>>)>>);

/// Images that stay open.
const KEPT: usize = 256;

impl Capturer {
    /// Names a stack's frames: by debug info and symbols of the images' own files, their separate debug files where those
    /// are installed, and what `symbols` has. Files stay open, so that the next stack costs less.
    ///
    /// # Signal safety
    ///
    /// Not safe: it opens files and allocates.
    pub fn symbolize(&self, stack: &RawStack, symbols: &Symbols) -> Vec<Frame> {
        let images = self.kept.images(stack.generation);
        let name = |(raw, index): (&super::RawFrame, u32)| {
            let mut frame = Frame::new(index);
            frame.address = Some(raw.address);
            frame.trust = raw.trust;
            self.name(&mut frame, raw.address, &images, symbols);
            frame
        };
        stack.frames().iter().zip(0..).map(name).collect()
    }

    /// Names one address of this process, with the images as they were listed last: of a function pointer, or of a frame
    /// that something else has captured.
    ///
    /// # Signal safety
    ///
    /// Not safe, as [`Capturer::symbolize`] is not.
    pub fn symbolize_address(&self, address: FrameAddress, symbols: &Symbols) -> Frame {
        let images = self.kept.images(self.kept.now().generation());
        let mut frame = Frame::new(0);
        frame.address = Some(address);
        self.name(&mut frame, address, &images, symbols);
        frame
    }

    fn name(&self, frame: &mut Frame, address: FrameAddress, images: &[Arc<LoadedImage>], symbols: &Symbols) {
        let lookup = address.lookup(Arch::HOST);
        let image = images.iter().find(|image| image.code.iter().any(|code| code.contains(lookup)));
        let Some((image, svma)) = image.and_then(|image| Some((image, image.bias.to_svma(lookup)?))) else {
            frame.reason = Some(Reason::NoImage);
            return;
        };
        let name = image.path.file_name().unwrap_or(image.path.as_os_str());
        frame.image_name = Some(name.to_string_lossy().into_owned());
        frame.relative_pc = Some(svma);
        let Some(open) = self.names.open(image, symbols) else {
            frame.reason = Some(Reason::MissingSymbols);
            return;
        };
        frame.image_offset = svma.offset_from(open.image_base());
        let located = of_function(&open, svma, open.lookup(symbols.index(), svma));
        located.fill_in(frame, address);
        if frame.names().next().is_none() {
            frame.reason = frame.reason.or(Some(Reason::NoSymbol));
        }
    }
}

impl Names {
    fn open(&self, image: &LoadedImage, symbols: &Symbols) -> Option<Arc<OpenImage>> {
        let key = open::key(image);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = all.iter().find(|(known, _)| *known == key) {
            return known.clone();
        }
        let opened = open(image, symbols).map(Arc::new);
        if all.len() >= KEPT {
            all.remove(0);
        }
        all.push((key, opened.clone()));
        opened
    }
}

fn open(image: &LoadedImage, symbols: &Symbols) -> Option<OpenImage> {
    let finder = Finder { symbols, arch: Arch::HOST, executable: None, use_mapped_paths: false };
    let wanted = Image {
        path: image.path.to_string_lossy().into_owned(),
        id: image.id,
        range: Some(image.range),
        bias: Some(image.bias),
        is_executable: image.is_program,
        is_from_memory: true,
        ..Image::default()
    };
    OpenImage::from_data(finder.beside(&wanted, data(image)), image.path.clone()).ok()
}

/// A frame as one line of text, or several where functions were inlined: `  3 0x… main (src/main.rs:12)`.
///
/// # Signal safety
///
/// Not safe.
pub fn line(frame: &Frame) -> String {
    let address = frame.address.map(|address| address.raw().to_string()).unwrap_or_default();
    let head = format!("{:3} {address:>18}", frame.index);
    let mut lines: Vec<String> = Vec::new();
    for function in &frame.functions {
        let place = match (&function.file, function.line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            (Some(file), None) => format!(" ({file})"),
            _ => String::new(),
        };
        let inlined = if function.inlined { " [inlined]" } else { "" };
        lines.push(format!("{head} {}{place}{inlined}", function.name));
    }
    if lines.is_empty() {
        let image = frame.image_name.as_deref().unwrap_or("no image");
        lines.push(match &frame.symbol {
            Some(symbol) => format!("{head} {} + {} ({image})", symbol.name, symbol.offset),
            None => format!("{head} ? ({image})"),
        });
    }
    lines.join("\n")
}
