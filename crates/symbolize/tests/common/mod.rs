//! The small binaries in `fixtures/symbolize`.

use backtrail_core::Svma;
use backtrail_object::Object;
use backtrail_symbolize::{Answer, FileRequest, Step, Symbolizer};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// All files of the directory, by name.
pub(crate) struct Files(pub(crate) HashMap<String, Vec<u8>>);

impl Files {
    pub(crate) fn read() -> Self {
        let mut files = HashMap::new();
        for entry in std::fs::read_dir(directory()).expect("fixtures/symbolize/bin") {
            let entry = entry.unwrap();
            files.insert(entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap());
        }
        Self(files)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// What a request asks for, wherever the build had it.
    pub(crate) fn requested(&self, image: &str, request: &FileRequest) -> Option<&[u8]> {
        match request {
            FileRequest::Dwp => self.get(&format!("{image}.dwp")),
            FileRequest::Dwo { path, .. }
            | FileRequest::Supplementary { path, .. }
            | FileRequest::DebugMapObject { path, .. } => {
                self.get(Path::new(path).file_name().unwrap().to_str().unwrap())
            }
            _ => None,
        }
    }
}

fn directory() -> PathBuf {
    backtrail_testkit::fixtures().join("symbolize/bin")
}

pub(crate) fn symbolizer<'f>(files: &'f Files, image: &str) -> Symbolizer<'f> {
    Symbolizer::new(vec![Object::parse(files.get(image).unwrap()).unwrap()]).unwrap()
}

/// Looks an address up, with all files that are asked for but the denied ones.
pub(crate) fn lookup<'s, 'f>(
    files: &'f Files,
    image: &str,
    symbolizer: &'s Symbolizer<'f>,
    address: u64,
    deny: &[FileRequest],
) -> Answer<'s> {
    for _ in 0..10 {
        match symbolizer.lookup(Svma::new(address)) {
            Step::Answer(answer) => return answer,
            Step::NeedFile(request) => {
                let data = files.requested(image, &request).filter(|_| !deny.contains(&request));
                symbolizer.provide(&request, data);
            }
        }
    }
    panic!("{image} {address:#x}: asks without end");
}
