//! The images of this process, and its stacks in the model's terms, for those who name frames.

use super::{Capturer, RawFrame, RawStack};
use backtrail_capture::local::LoadedImage;
use backtrail_core::{Arch, Avma, FrameAddress, Reason, Trust};
use backtrail_model::{Frame, Image, Process, Thread};
use backtrail_store::{Index, LoadedFiles};
use std::sync::Arc;

impl Capturer {
    /// The images as they were listed last, with their names, files, identities and ranges.
    ///
    /// # Signal safety
    ///
    /// Not safe: it allocates.
    pub fn images(&self) -> Vec<Image> {
        let images = self.kept.images(self.kept.now().generation());
        images.iter().map(|image| listed(image)).collect()
    }

    fn placed(&self, frames: &[RawFrame], generation: u64, index: &Index) -> (Process, Vec<LoadedFiles>) {
        let images = self.kept.images(generation);
        let mut process = Process { arch: Some(Arch::HOST), ..Process::default() };
        let mut files: Vec<LoadedFiles> = Vec::new();
        let mut known: Vec<&Arc<LoadedImage>> = Vec::new();
        let mut thread = Thread::default();
        for (raw, number) in frames.iter().zip(0..) {
            let mut frame = Frame::new(number);
            (frame.address, frame.trust) = (Some(raw.address), raw.trust);
            let lookup = raw.address.lookup(Arch::HOST);
            let image = images.iter().find(|image| image.code.iter().any(|code| code.contains(lookup)));
            match image {
                Some(image) => {
                    let position = known.iter().position(|other| Arc::ptr_eq(other, image));
                    let position = position.unwrap_or_else(|| {
                        known.push(image);
                        let found = self.files.find(image, index);
                        let mut shown = listed(image);
                        shown.symbols.status = found.status.clone();
                        process.images.push(shown);
                        files.push(LoadedFiles {
                            image: known.len() - 1,
                            ranges: image.code.clone(),
                            bias: Some(image.bias),
                            files: found,
                        });
                        known.len() - 1
                    });
                    let shown = process.images.get(position);
                    frame.image = Some(position);
                    frame.image_name = shown.map(|image| image.name.clone());
                    frame.relative_pc = image.bias.to_svma(lookup);
                    frame.image_offset = shown.and_then(|image| lookup.offset_from(image.load_address));
                }
                None => frame.reason = Some(Reason::NoImage),
            }
            thread.frames.push(frame);
        }
        process.threads.push(thread);
        (process, files)
    }
}

/// What joins a [`Capturer`] with those who name frames. A trait, so that those who only capture need not know of files.
pub trait CapturedProcess {
    /// A captured stack as a process of one thread, with those images that the stack's frames lie in and the files that can
    /// name them: the images' own, the debug files that belong to them, and what `index` has.
    ///
    /// # Signal safety
    ///
    /// Not safe: it opens files and allocates.
    fn process(&self, stack: &RawStack, index: &Index) -> (Process, Vec<LoadedFiles>);

    /// The same for one address of this process, with the images as they were listed last: of a function pointer, or of a
    /// frame that something else has captured.
    ///
    /// # Signal safety
    ///
    /// Not safe, as [`process`](Self::process) is not.
    fn process_at(&self, address: FrameAddress, index: &Index) -> (Process, Vec<LoadedFiles>);
}

impl CapturedProcess for Capturer {
    fn process(&self, stack: &RawStack, index: &Index) -> (Process, Vec<LoadedFiles>) {
        self.placed(stack.frames(), stack.generation, index)
    }

    fn process_at(&self, address: FrameAddress, index: &Index) -> (Process, Vec<LoadedFiles>) {
        let frame = RawFrame { address, stack_pointer: Avma::new(0), trust: Trust::Context };
        self.placed(&[frame], self.kept.now().generation(), index)
    }
}

fn listed(image: &LoadedImage) -> Image {
    let path = image.path.to_string_lossy().into_owned();
    // Load addresses are those of pages, also where the first segment begins within one.
    let load_address = Avma::new(image.range.start().get() & !0xfff);
    Image {
        name: path.rsplit('/').next().unwrap_or(&path).to_owned(),
        path: Some(path),
        id: image.id,
        arch: Some(Arch::HOST),
        load_address,
        end_address: Some(image.range.end()),
        ..Image::default()
    }
}
