//! One row of a native stack: `#01 pc 0000b884  /path/lib.so (function+24) (BuildId: 0123…)`.
//!
//! Behind the address stands the file, then, each where it is known: `(offset 0x1000)`, where the library begins in that
//! file; `(function+24)`, in ART's traces `(???)`; `(BuildId: …)`. Files are also `base.apk!libx.so`, `[vdso]`,
//! `<anonymous:7a…>`, `/memfd:jit-cache (deleted)`. In ART's traces `native: ` stands before the row.

use crate::numbers::is_number;

/// A row as it is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NativeRow<'l> {
    pub(super) index: u32,
    /// The address that the row states, which counts from the file's own addresses or from its start.
    pub(super) pc: u64,
    pub(super) file: &'l str,
    /// Where the library begins in the file.
    pub(super) file_offset: Option<u64>,
    pub(crate) function: Option<&'l str>,
    pub(crate) function_offset: Option<u64>,
    pub(super) build_id: Option<&'l str>,
    /// What stands behind all that.
    pub(super) rest: &'l str,
}

impl<'l> NativeRow<'l> {
    /// Reads a row; `None` where the line is none.
    pub(crate) fn read(line: &'l str) -> Option<Self> {
        let line = line.trim();
        // Tencent's Bugly numbers the rows of its pages: `3 #02 pc 0001c7ef /system/lib/libc.so (raise+10) [armeabi-v7a]`.
        let numbered = line.split_once(" #").filter(|(number, _)| is_number(number) && number.len() <= 3);
        let line = numbered.map_or(line, |(number, _)| line.get(number.len() + 1..).unwrap_or(line));
        let line = line.strip_prefix("native: ").unwrap_or(line).trim_start().strip_prefix('#')?;
        let (index, rest) = line.split_once(char::is_whitespace)?;
        let rest = rest.trim_start().strip_prefix("pc ")?.trim_start();
        let (pc, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        // Google Play writes `0x` before it.
        let pc = pc.strip_prefix("0x").unwrap_or(pc);
        let is_hex = !pc.is_empty() && pc.bytes().all(|byte| byte.is_ascii_hexdigit());
        let pc = u64::from_str_radix(pc, 16).ok().filter(|_| is_hex)?;
        let index = index.parse().ok().filter(|_| is_number(index))?;
        Some(Self { index, pc, ..Self::tail(tail.trim()) })
    }

    /// What stands behind the address.
    fn tail(tail: &'l str) -> Self {
        let mut row = Self::default();
        let mut tail = tail;
        // Tencent's reporter: `[arm64-v8a::0123…]`, and of the system's libraries `[armeabi-v7a]`.
        const ABIS: [&str; 6] =
            [" [armeabi]", " [armeabi-v7a]", " [arm64-v8a]", " [x86]", " [x86_64]", " [mips]"];
        if let Some(before) = ABIS.iter().find_map(|abi| tail.strip_suffix(abi)) {
            tail = before.trim_end();
        }
        if let Some((before, id)) = tail.strip_suffix(']').and_then(|tail| tail.rsplit_once(" ["))
            && let Some((_, id)) =
                id.split_once("::").filter(|(_, id)| id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            row.build_id = Some(id);
            tail = before.trim_end();
        }
        // People leave the colon out.
        if let Some((before, id, rest)) = group(tail, "(BuildId: ").or_else(|| group(tail, "(BuildId ")) {
            (row.build_id, row.rest) = (Some(id), rest);
            tail = before;
        }
        // OpenHarmony sets nothing off: `/system/lib/libc.so(raise+10)(0123…)`, with the build id of 16 bytes or more.
        if let Some((before, id)) = tail.strip_suffix(')').and_then(|tail| tail.rsplit_once('('))
            && before.starts_with('/')
            && !before.ends_with(char::is_whitespace)
            && id.len() >= 32
            && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            row.build_id = Some(id);
            row.file = before;
            let is_path = |path: &str| !path.contains(char::is_whitespace);
            if let Some((file, name)) = before.split_once('(').filter(|(file, _)| is_path(file)) {
                row.file = file;
                row.set_function(name.strip_suffix(')'));
            }
            return row;
        }
        if let Some((file, offset, behind)) = group(tail, "(offset ") {
            let offset = offset.trim().trim_start_matches("0x");
            row.file_offset = u64::from_str_radix(offset, 16).ok();
            if row.file_offset.is_some() {
                row.file = file;
                row.set_function(behind.strip_prefix('(').and_then(|name| name.strip_suffix(')')));
                if row.function.is_none() && !behind.is_empty() && row.rest.is_empty() {
                    row.rest = behind;
                }
                return row;
            }
        }
        match last_group(tail) {
            Some((file, name)) => {
                row.file = file;
                row.set_function(Some(name));
            }
            None => row.file = tail,
        }
        row
    }

    fn set_function(&mut self, text: Option<&'l str>) {
        let Some(text) = text.filter(|text| !text.is_empty() && *text != "???") else { return };
        let split = text.rsplit_once('+').and_then(|(name, offset)| Some((name, offset.parse().ok()?)));
        match split.filter(|(name, _)| !name.is_empty()) {
            Some((name, offset)) => (self.function, self.function_offset) = (Some(name), Some(offset)),
            None => self.function = Some(text),
        }
    }

    /// The name of the library: behind the last `/` or `!`.
    pub(super) fn image_name(&self) -> &'l str {
        image_name(self.file)
    }
}

/// The name of the file that code was mapped from: `libx.so` of `/data/app/base.apk!libx.so`.
pub(super) fn image_name(file: &str) -> &str {
    let is_path = file.starts_with('/');
    let end = file.strip_suffix(" (deleted)").unwrap_or(file);
    if is_path { end.rsplit(['/', '!']).next().unwrap_or(end) } else { file }
}

/// `before (word text) behind`, split.
fn group<'l>(text: &'l str, start: &str) -> Option<(&'l str, &'l str, &'l str)> {
    let (before, rest) = text.split_once(start)?;
    let (inner, behind) = rest.split_once(')')?;
    Some((before.trim_end(), inner.trim(), behind.trim()))
}

/// The last pair of parentheses, which may hold others, and what stands before it.
fn last_group(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_suffix(')')?;
    let mut depth = 1_usize;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let file = inner.get(..at)?;
            let name = inner.get(at + 1..)?;
            // A name is set off by a blank, and a deleted file is no name.
            let is_name = file.ends_with(char::is_whitespace) && name != "deleted";
            return Some((file.trim_end(), name)).filter(|(file, _)| is_name && !file.is_empty());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts<'l> = (u32, u64, &'l str, Option<u64>, Option<&'l str>, Option<u64>, Option<&'l str>);

    fn parts(line: &str) -> Parts<'_> {
        let row = NativeRow::read(line).unwrap();
        assert_eq!(row.rest, "");
        (row.index, row.pc, row.file, row.file_offset, row.function, row.function_offset, row.build_id)
    }

    #[test]
    fn rows_of_all_versions() {
        for (line, expected) in [
            (
                "    #00 pc 000374e0  /system/lib/libc.so (tgkill+12)",
                (0, 0x374e0, "/system/lib/libc.so", None, Some("tgkill"), Some(12), None),
            ),
            (
                "#00 pc 0x4dbd4c  /lib/arm64/libx.so   (BuildId 6036a7a4)",
                (0, 0x4d_bd4c, "/lib/arm64/libx.so", None, None, None, Some("6036a7a4")),
            ),
            (
                "#01 pc 3a57 /system/lib/liba.z.so(n::Get(int, bool)+66)(7c7c81050ce2a86bf0a22943c25773db)",
                (
                    1,
                    0x3a57,
                    "/system/lib/liba.z.so",
                    None,
                    Some("n::Get(int, bool)"),
                    Some(66),
                    Some("7c7c81050ce2a86bf0a22943c25773db"),
                ),
            ),
            (
                "#02 pc 757c /system/bin/spawn(55679d09bcdea35bb1e0d4e1d9a3e58f)",
                (2, 0x757c, "/system/bin/spawn", None, None, None, Some("55679d09bcdea35bb1e0d4e1d9a3e58f")),
            ),
            (
                "#05 pc 00000c6f  /system/xbin/crasher",
                (5, 0xc6f, "/system/xbin/crasher", None, None, None, None),
            ),
            (
                "  native: #01 pc 4c35c /apex/lib64/libart.so (art::(anonymous namespace)::Check(art::X&, bool)+612) (BuildId: ba48)",
                (
                    1,
                    0x4c35c,
                    "/apex/lib64/libart.so",
                    None,
                    Some("art::(anonymous namespace)::Check(art::X&, bool)"),
                    Some(612),
                    Some("ba48"),
                ),
            ),
            (
                "#02 pc 000020f3  /data/oat/base.odex (offset 0x2000)",
                (2, 0x20f3, "/data/oat/base.odex", Some(0x2000), None, None, None),
            ),
            (
                "#03 pc 0000000000001234  /data/app/base.apk!libx.so (offset 0x1f000) (f()+4) (BuildId: 00ff)",
                (3, 0x1234, "/data/app/base.apk!libx.so", Some(0x1f000), Some("f()"), Some(4), Some("00ff")),
            ),
            (
                "#04 pc 208af34  /memfd:jit-cache (deleted) (offset 0x2000000) (art_jni_trampoline+116)",
                (
                    4,
                    0x208_af34,
                    "/memfd:jit-cache (deleted)",
                    Some(0x200_0000),
                    Some("art_jni_trampoline"),
                    Some(116),
                    None,
                ),
            ),
            (
                "#05 pc 0x08af34  /memfd:jit-cache (deleted)",
                (5, 0x8af34, "/memfd:jit-cache (deleted)", None, None, None, None),
            ),
            ("#06 pc 8af34  <anonymous:7a12>", (6, 0x8af34, "<anonymous:7a12>", None, None, None, None)),
            ("#07 pc 8af34  /x.so (???)", (7, 0x8af34, "/x.so", None, None, None, None)),
            (
                "#08 pc 8af34  /x.so (operator()(int) const+8)",
                (8, 0x8af34, "/x.so", None, Some("operator()(int) const"), Some(8), None),
            ),
            ("#09 pc 8af34", (9, 0x8af34, "", None, None, None, None)),
        ] {
            assert_eq!(parts(line), expected, "{line}");
        }
        for line in ["#00 0x1234 main", "#x pc 12 /a", "# pc 12 /a", "#1 pc +12 /a", "#00  00ff  0000", ""] {
            assert_eq!(NativeRow::read(line), None, "{line}");
        }
    }

    #[test]
    fn libraries_in_packages_have_their_own_name() {
        assert_eq!(image_name("/data/app/x==/base.apk!libx.so"), "libx.so");
        assert_eq!(image_name("/data/app/x==/split.apk!/lib/arm64-v8a/libx.so"), "libx.so");
        assert_eq!(image_name("/memfd:jit-cache (deleted)"), "memfd:jit-cache");
        assert_eq!(image_name("[vdso]"), "[vdso]");
        assert_eq!(image_name("<anonymous:7a/b>"), "<anonymous:7a/b>");
    }
}
