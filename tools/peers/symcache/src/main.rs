//! `peers-symcache OUT FILE…`: converts each file into a symbol cache in the directory OUT, one after the other on one
//! thread, which is all that the crate uses.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use symbolic_common::ByteView;
use symbolic_debuginfo::Archive;
use symbolic_symcache::SymCacheConverter;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((out, files)) = arguments.split_first() else {
        return Err("usage: peers-symcache OUT FILE…".into());
    };
    for file in files.iter().map(Path::new) {
        let bytes = ByteView::open(file)?;
        let archive = Archive::parse(&bytes)?;
        for object in archive.objects() {
            let mut converter = SymCacheConverter::new();
            converter.process_object(&object?)?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let mut to = BufWriter::new(File::create(Path::new(out).join(format!("{name}.symcache")))?);
            converter.serialize(&mut to)?;
            to.flush()?;
        }
    }
    Ok(())
}
