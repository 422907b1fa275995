//! Names for a hang's frames.

use super::Hang;
use crate::open_image::OpenImage;
use crate::stacks::of_function;
use crate::symbols::Opened;
use crate::{Binary, ImageSymbols, Located, Symbols};
use backtrail_core::{Arch, Bias, Reason, Svma};
use backtrail_report::{Frame, Image};
use backtrail_store::Index;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Looks every frame up in the files of its image, each address once.
pub(super) fn name(hang: &mut Hang, symbols: &Symbols) {
    let arch = hang.process.arch.unwrap_or(Arch::Unknown);
    let mut by_image: BTreeMap<usize, Vec<&mut Frame>> = BTreeMap::new();
    for frame in hang.nodes.iter_mut().map(|node| &mut node.frame) {
        match frame.image.filter(|image| *image < hang.images.len()) {
            Some(image) => by_image.entry(image).or_default().push(frame),
            None => frame.reason = Some(Reason::NoImage),
        }
    }
    for (position, frames) in by_image {
        let Some(image) = hang.images.get(position) else { continue };
        match File::find(image, symbols) {
            Ok(file) => file.name(image, frames, arch, symbols),
            Err(reason) => frames.into_iter().for_each(|frame| frame.reason = Some(reason)),
        }
    }
}

/// What answers for one image.
enum File {
    /// Found by identity below the caller's paths.
    Given(Arc<OpenImage>),
    /// The file that was mapped, with what it names.
    Mapped(Box<Binary>),
}

impl File {
    fn find(image: &Image, symbols: &Symbols) -> Result<Self, Reason> {
        if let Opened::Found(open) = symbols.open(image, &mut ImageSymbols::default()) {
            return Ok(Self::Given(open));
        }
        let path = image.path.as_deref().ok_or(Reason::MissingSymbols)?;
        let binary = Binary::open(Path::new(path), image.arch).map_err(|_| Reason::MissingSymbols)?;
        // Programs and libraries are replaced while they run.
        if image.id.is_some() && binary.facts().id != image.id {
            return Err(Reason::IdMismatch);
        }
        Ok(Self::Mapped(Box::new(binary)))
    }

    fn open(&self) -> &OpenImage {
        match self {
            Self::Given(open) => open,
            Self::Mapped(binary) => &binary.open,
        }
    }

    fn index<'a>(&'a self, symbols: &'a Symbols) -> &'a Index {
        match self {
            Self::Given(_) => symbols.index(),
            Self::Mapped(binary) => binary.index(),
        }
    }

    fn name(&self, image: &Image, frames: Vec<&mut Frame>, arch: Arch, symbols: &Symbols) {
        let open = self.open();
        let bias = Bias::between(image.load_address, open.image_base());
        let stated = |frame: &Frame| {
            let address = frame.address?;
            Some((address, bias.to_svma(address.lookup(arch))?))
        };
        let mut wanted: Vec<Svma> = frames.iter().filter_map(|frame| Some(stated(frame)?.1)).collect();
        wanted.sort();
        wanted.dedup();
        let answers = open.lookup_all(self.index(symbols), &wanted);
        let answers: HashMap<Svma, Located> = wanted.into_iter().zip(answers).collect();
        for frame in frames {
            let located = stated(frame).and_then(|(at, svma)| Some((at, svma, answers.get(&svma)?.clone())));
            match located {
                Some((at, svma, located)) => of_function(open, svma, located).fill_in(frame, at),
                None => frame.reason = Some(Reason::OutsideSections),
            }
        }
    }
}
