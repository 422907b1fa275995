//! The app's own copies of a library's classes, under another prefix.

use std::path::{Path, PathBuf};

use backtrail_object::{Binding, Limits, slices};

use crate::Result;

/// Writes such members of an archive as objects whose classes have another prefix, and which define nothing else that other
/// objects may name. Every second one, so that some are left.
pub(crate) fn make(archive: &Path, arch: &str, directory: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let data = std::fs::read(archive).map_err(|error| error.to_string())?;
    let all = slices(&data, &Limits::default()).map_err(|error| error.to_string())?;
    let mut made = Vec::new();
    for (number, slice) in all.iter().filter(|slice| slice.arch.name() == arch).enumerate() {
        let Ok(object) = slice.parse(&Limits::default()) else { continue };
        let symbols = object.symbols().unwrap_or_default();
        let exported: Vec<&str> = symbols
            .iter()
            .filter(|symbol| symbol.binding != Binding::Local)
            .map(|symbol| &*symbol.name)
            .collect();
        let classes: Vec<&str> = exported
            .iter()
            .filter_map(|name| name.strip_prefix("_OBJC_CLASS_$_"))
            .filter(|name| name.len() > 4)
            .collect();
        let is_class = |name: &&&str| name.starts_with("_OBJC_");
        if classes.is_empty() || number % 2 == 1 || !exported.iter().all(|name| is_class(&name)) {
            continue;
        }
        let mut bytes = slice.data.to_vec();
        for class in classes {
            replace(
                &mut bytes,
                class.as_bytes(),
                &[b"QQ", class.as_bytes().get(2..).unwrap_or_default()].concat(),
            );
        }
        let path = directory.join(format!("copy{number}.o"));
        std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
        made.push(path);
    }
    Ok(made)
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let mut at = 0;
    while at + old.len() <= bytes.len() {
        let there = bytes.get_mut(at..at + old.len());
        match there {
            Some(there) if there == old => {
                there.copy_from_slice(new);
                at += old.len();
            }
            _ => at += 1,
        }
    }
}
