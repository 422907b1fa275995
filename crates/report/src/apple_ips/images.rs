//! `usedImages`.

use super::body::Body;
use crate::json::Json;
use crate::leftovers::{fill, text};
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::Image;
use std::fmt;

pub(super) fn read(body: &mut Body<'_, '_>, value: &Json<'_>) {
    for (position, item) in value.items().iter().enumerate() {
        if position >= body.limits.max_images {
            let count = value.items().len();
            body.notes.add(|| format!("{count} images, more than the limit allows; the rest is not read"));
            body.keep("usedImages".to_owned(), value);
            return;
        }
        let image = read_image(body, format_args!("usedImages[{position}]"), item);
        // Frames name images by position, so a broken one keeps its place.
        body.report.process.images.push(image);
    }
    if !matches!(value.value, crate::json::Value::Array(_)) {
        body.keep("usedImages".to_owned(), value);
    }
}

/// What is put together at the end.
#[derive(Default)]
struct Parts {
    name: Option<String>,
    base: Option<u64>,
    size: Option<u64>,
    /// Of ELF: longer than a UUID. Our own writer has it.
    build_id: Option<ImageId>,
    short_version: Option<String>,
    build_version: Option<String>,
}

fn read_image(body: &mut Body<'_, '_>, path: fmt::Arguments<'_>, item: &Json<'_>) -> Image {
    let (mut image, mut parts) = (Image::default(), Parts::default());
    let is_object = body.members_of(path, item, |_, name, value| match name {
        "name" => fill(&mut parts.name, text(value)),
        "path" => fill(&mut image.path, text(value)),
        "base" => fill(&mut parts.base, value.number()),
        "size" => fill(&mut parts.size, value.number()),
        "arch" => fill(&mut image.arch, value.text().and_then(|name| Arch::from_name(&name))),
        "source" => fill(&mut image.source, text(value)),
        "CFBundleIdentifier" => fill(&mut image.bundle_id, text(value)),
        "CFBundleShortVersionString" => fill(&mut parts.short_version, text(value)),
        "CFBundleVersion" => fill(&mut parts.build_version, text(value)),
        "uuid" => read_id(&mut image, value),
        "buildId" => fill(&mut parts.build_id, value.text().and_then(|id| ImageId::parse_build_id(&id).ok())),
        _ => false,
    });
    if !is_object {
        body.notes.add(|| format!("{path}: expected an object that describes an image"));
        body.keep(path.to_string(), item);
    }
    if parts.size.is_some_and(|size| parts.base.unwrap_or_default().checked_add(size).is_none()) {
        body.notes.add(|| format!("{path}: the image ends beyond the address space"));
    }
    assemble(&mut image, parts);
    image
}

/// A nil identity is how Apple writes "none".
fn read_id(image: &mut Image, value: &Json<'_>) -> bool {
    let id = value.text().and_then(|id| ImageId::parse_uuid(&id).ok());
    let known = id.is_some() && image.id.is_none();
    image.id = image.id.or(id.filter(|id| !id.is_nil()));
    known
}

fn assemble(image: &mut Image, parts: Parts) {
    let file = || image.path.as_deref()?.rsplit('/').next().map(str::to_owned);
    image.name = parts.name.or_else(file).unwrap_or_default();
    let base = parts.base.unwrap_or_default();
    image.load_address = Avma::new(base);
    image.id = parts.build_id.or(image.id);
    let size = parts.size.filter(|size| *size > 0);
    image.end_address = size.map(|size| Avma::new(base.saturating_add(size)));
    let versions: Vec<String> = [parts.short_version, parts.build_version].into_iter().flatten().collect();
    image.version = (!versions.is_empty()).then(|| versions.join(" - "));
}
