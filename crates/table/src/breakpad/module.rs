//! The first record: which image the file is of.

use super::id;
use backtrail_core::{Arch, ImageId};

/// What a file says of its image.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Module {
    /// The operating system: `Linux`, `Mac`, `Android`, `windows`…
    pub os: String,
    /// The architecture in Breakpad's words: `x86_64`, `arm64`…
    pub arch: String,
    /// The debug id: 32 hexadecimal digits and the age.
    pub debug_id: String,
    /// The name of the image's file.
    pub name: String,
    /// The code id: the whole build id of ELF files, the UUID of Mach-O.
    pub code_id: Option<String>,
}

impl Module {
    /// For an image; `is_apple` tells whether it is Mach-O.
    pub fn new(id: Option<&ImageId>, arch: Arch, is_apple: bool, name: &str) -> Self {
        let upper = |id: &ImageId| id.as_bytes().iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        Self {
            os: if is_apple { "Mac" } else { "Linux" }.to_owned(),
            arch: arch_name(arch).to_owned(),
            debug_id: id.map_or_else(|| "0".repeat(33), id::debug_id),
            name: name.to_owned(),
            code_id: id.filter(|id| !matches!(id, ImageId::CodeHash(_))).map(upper),
        }
    }

    /// The image's identity.
    pub fn id(&self) -> Option<ImageId> {
        let is_apple = self.is_apple();
        if self.os == "windows" {
            return None;
        }
        id::image_id(&self.debug_id, self.code_id.as_deref(), is_apple).filter(|id| !id.is_nil())
    }

    /// Whether the image is Mach-O.
    pub fn is_apple(&self) -> bool {
        matches!(&*self.os, "Mac" | "mac" | "iOS" | "ios")
    }

    /// The architecture.
    pub fn arch(&self) -> Arch {
        match &*self.arch {
            "x86" => Arch::X86,
            "arm" => Arch::Arm,
            name => Arch::from_name(name).unwrap_or(Arch::Unknown),
        }
    }
}

fn arch_name(arch: Arch) -> &'static str {
    match arch {
        Arch::X86 => "x86",
        Arch::X86_64 | Arch::X86_64h => "x86_64",
        Arch::Arm | Arch::Armv6 | Arch::Armv7 | Arch::Armv7s | Arch::Armv7k => "arm",
        arch => arch.name(),
    }
}
