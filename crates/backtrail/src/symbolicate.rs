//! Fills a report's frames with names.

use crate::open_image::OpenImage;
use crate::symbols::Opened;
use crate::{ImageSymbols, SymbolStatus, Symbols};
use backtrail_core::{Arch, Avma, Bias, FrameAddress, Reason};
use backtrail_demangle as demangle;
use backtrail_report::{Frame, Image, Report};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Looks every frame up in the files of its image; says of each image where its symbols are, or why there are none.
pub(crate) fn symbolicate(report: &mut Report, symbols: &Symbols) -> Vec<ImageSymbols> {
    let arch = report.process.arch.unwrap_or(Arch::Unknown);
    let images = std::mem::take(&mut report.images);
    let mut states: Vec<_> = images.iter().map(|_| ImageSymbols::default()).collect();
    let mut opened: BTreeMap<usize, Option<Placed>> = BTreeMap::new();
    let addresses = addresses_by_image(report);
    for frame in report.frames_mut() {
        readable_report_names(frame);
        let Some((index, image)) = frame.image.and_then(|index| Some((index, images.get(index)?))) else {
            if is_unnamed(frame) {
                frame.reason = Some(Reason::NoImage);
            }
            continue;
        };
        let Some(state) = states.get_mut(index) else { continue };
        let placed = opened.entry(index).or_insert_with(|| {
            let placed = Placed::find(image, symbols, state)?;
            placed.read_ahead(addresses.get(&index)?, image.arch.unwrap_or(arch));
            Some(placed)
        });
        if let Some(placed) = placed {
            placed.name(frame, image.arch.unwrap_or(arch), symbols);
        }
        if is_unnamed(frame) {
            state.unnamed_frames += 1;
            frame.reason = frame.reason.or_else(|| reason(image, state));
        }
    }
    for state in &mut states {
        if state.unnamed_frames == 0 && state.status != SymbolStatus::Found {
            state.status = SymbolStatus::NoneNeeded;
        }
    }
    report.images = images;
    states
}

fn addresses_by_image(report: &mut Report) -> BTreeMap<usize, Vec<FrameAddress>> {
    let mut addresses: BTreeMap<usize, Vec<FrameAddress>> = BTreeMap::new();
    for frame in report.frames_mut() {
        if let Some((image, address)) = frame.image.zip(frame.address) {
            addresses.entry(image).or_default().push(address);
        }
    }
    addresses
}

fn is_unnamed(frame: &Frame) -> bool {
    frame.names().next().is_none()
}

/// Reports of older systems and of other reporters state linkage names; people read the other kind.
fn readable_report_names(frame: &mut Frame) {
    if let Some(reported) = &mut frame.reported {
        let readable = demangle::demangle(&reported.name, &demangle::Options::default());
        if readable != reported.name {
            reported.name = readable.into_owned();
        }
    }
}

/// Why a frame of an image without symbols has no name.
fn reason(image: &Image, state: &ImageSymbols) -> Option<Reason> {
    match state.status {
        SymbolStatus::IdMismatch(_) => Some(Reason::IdMismatch),
        _ if image.id.is_none() => Some(Reason::NoId),
        _ if state.unreadable => Some(Reason::Unreadable),
        _ => Some(Reason::MissingSymbols),
    }
}

/// An open image at its place in the process.
struct Placed {
    open: Arc<OpenImage>,
    bias: Bias,
}

impl Placed {
    fn find(image: &Image, symbols: &Symbols, state: &mut ImageSymbols) -> Option<Self> {
        match symbols.open(image, state) {
            Opened::Found(open) => {
                let bias = Bias::between(image.load_address, open.image_base());
                state.status = SymbolStatus::Found;
                state.files = open.files.clone();
                state.bias = Some(bias);
                Some(Self { open, bias })
            }
            Opened::Not(status) => {
                state.status = status;
                None
            }
        }
    }

    /// Reads what the lookups of these addresses will need, on all cores.
    fn read_ahead(&self, addresses: &[FrameAddress], arch: Arch) {
        let stated = addresses.iter().filter_map(|address| self.bias.to_svma(address.lookup(arch)));
        self.open.read_ahead(&stated.collect::<Vec<_>>());
    }

    /// Fills in what the image's files know of the frame's address.
    fn name(&self, frame: &mut Frame, arch: Arch, symbols: &Symbols) {
        let Some(address) = frame.address else { return };
        let avma: Avma = address.lookup(arch);
        let Some(svma) = self.bias.to_svma(avma) else {
            frame.reason = Some(Reason::OutsideSections);
            return;
        };
        let located = self.open.lookup(symbols.index(), svma);
        located.fill_in(frame, address);
    }
}
