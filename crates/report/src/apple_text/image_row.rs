//! Rows of the binary images: `0xLO - 0xHI name … <id> path`.
//!
//! iOS writes `name arch  <32 digits> path`, macOS `+com.example.id (1.0 - 12) <UUID> path` with `+` for third
//! parties, PLCrashReporter `+name arch  <digits> path` with versions on macOS, old ones `com.example.id (x86_64)`;
//! macOS up to 10.6 puts the first version before the brackets (`com.example.id 1.0 (12)`), older ones have no id at all. Names and paths hold blanks. The upper address is inside the image.

use super::words::{Hex, hex, words};
use crate::text::lossy;
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::Image;

/// A row as an image, with what is odd about it.
#[derive(Debug)]
pub(crate) struct ImageRow {
    pub(crate) image: Image,
    pub(crate) oddity: Option<&'static str>,
}

impl ImageRow {
    /// Reads a row; `None` where the line is none.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let mut words = words(line);
        let low = hex(words.next()?.1)?;
        let dash = words.next()?.1;
        let (high_span, high) = words.next()?;
        let high = if high == b"???" { None } else { Some(hex(high)?) };
        if dash != b"-" {
            return None;
        }
        let mut image = Image::default();
        let oddity = set_range(&mut image, low, high);
        let rest = lossy(line.get(high_span.end..)?);
        describe(&mut image, rest.trim());
        Some(Self { image, oddity })
    }
}

fn set_range(image: &mut Image, low: Hex, high: Option<Hex>) -> Option<&'static str> {
    let (Hex::Value(low), false) = (low, high == Some(Hex::TooLong)) else {
        return Some("its addresses do not fit into 64 bits");
    };
    image.load_address = Avma::new(low);
    let Some(Hex::Value(high)) = high else { return None };
    if high < low {
        return Some("it ends before it begins");
    }
    // The filler row `0x0 - 0xffffffffffffffff ???` has no address behind it, and no image in it.
    image.end_address = Some(Avma::new(high.saturating_add(1)));
    None
}

/// What stands behind the addresses.
fn describe(image: &mut Image, text: &str) {
    let (mut left, path) = match split_at_id(text) {
        Some((left, id, path)) => {
            image.id = ImageId::parse_uuid(id).ok().filter(|id| !id.is_nil());
            (left, path)
        }
        None => split_at_path(text),
    };
    image.path = (!path.is_empty() && path != "???").then(|| path.to_owned());
    if let Some(rest) = left.strip_prefix('+') {
        image.third_party = true;
        left = rest.trim_start();
    }
    let left = take_versions(image, left);
    let left = take_leading_version(image, left);
    let shown = take_arch(image, left);
    name(image, shown);
}

/// A UUID with its hyphens, and some room.
const LONGEST_ID: usize = 64;

/// `left <id> path`. Paths may hold angle brackets, so the first pair that holds an id counts.
fn split_at_id(text: &str) -> Option<(&str, &str, &str)> {
    memchr::memchr_iter(b'<', text.as_bytes()).find_map(|open| {
        let (left, rest) = text.split_at_checked(open)?;
        let rest = rest.strip_prefix('<')?;
        let near = rest.as_bytes().get(..=LONGEST_ID).unwrap_or(rest.as_bytes());
        let (id, path) = rest.split_at_checked(memchr::memchr(b'>', near)?)?;
        let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        is_id.then_some((left.trim_end(), id, path.strip_prefix('>')?.trim()))
    })
}

fn split_at_path(text: &str) -> (&str, &str) {
    text.find(" /")
        .and_then(|at| text.split_at_checked(at))
        .map_or((text, ""), |(left, path)| (left.trim_end(), path.trim()))
}

/// Takes `(1.0 - 12)`, `(*)` or `(x86_64)` off the end.
fn take_versions<'t>(image: &mut Image, text: &'t str) -> &'t str {
    let Some((left, inside)) = text.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) else {
        return text;
    };
    if !left.is_empty() && !left.ends_with(char::is_whitespace) {
        return text;
    }
    match Arch::from_name(inside) {
        Some(arch) => image.arch = Some(arch),
        // `*` is how newer systems write "none".
        None if inside != "*" => image.version = Some(inside.to_owned()),
        None => {}
    }
    left.trim_end()
}

/// Takes `1.0` off the end where a version in brackets follows: both are the version. A name that ends so is left
/// whole, which the path tells.
fn take_leading_version<'t>(image: &mut Image, text: &'t str) -> &'t str {
    let Some(version) = &mut image.version else { return text };
    let Some((left, word)) = text.rsplit_once(' ') else { return text };
    let is_version = word == "???" || word.starts_with(|first: char| first.is_ascii_digit());
    let is_name = image.path.as_deref().is_some_and(|path| path.ends_with(&format!("/{text}")));
    if !is_version || is_name || left.is_empty() {
        return text;
    }
    *version = format!("{word} ({version})");
    left.trim_end()
}

/// Takes the architecture off the end.
fn take_arch<'t>(image: &mut Image, text: &'t str) -> &'t str {
    let Some((left, word)) = text.rsplit_once(char::is_whitespace) else { return text };
    match Arch::from_name(word) {
        Some(arch) => image.arch = Some(arch),
        None if word == "unknown-arch" => image.arch = Some(Arch::Unknown),
        None => return text,
    }
    left.trim_end()
}

/// macOS names images by their bundle; the file's name is then the end of the path.
fn name(image: &mut Image, shown: &str) {
    let file = image.path.as_deref().and_then(|path| path.rsplit('/').next()).filter(|file| !file.is_empty());
    match file {
        Some(file) if file != shown && (shown.is_empty() || shown.contains('.')) => {
            image.name = file.to_owned();
            image.bundle_id = (!shown.is_empty()).then(|| shown.to_owned());
        }
        _ => image.name = shown.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Image {
        let row = ImageRow::read(line.as_bytes()).unwrap_or_else(|| panic!("no row: {line}"));
        assert_eq!(row.oddity, None, "{line}");
        row.image
    }

    #[test]
    fn ios_rows_with_blanks_in_name_and_path() {
        let image = read(
            "       0x10211c000 -        0x1024b3fff App Namespace arm64  <debeff4e26534f38e59bc9de7b8daade> /private/App Namespace Some.app/App Namespace",
        );
        assert_eq!(image.name, "App Namespace");
        assert_eq!(image.arch, Some(Arch::Arm64));
        assert_eq!(image.load_address, Avma::new(0x1_0211_c000));
        assert_eq!(image.end_address, Some(Avma::new(0x1_024b_4000)));
        assert_eq!(image.id, ImageId::parse_uuid("debeff4e26534f38e59bc9de7b8daade").ok());
        assert_eq!(image.path.as_deref(), Some("/private/App Namespace Some.app/App Namespace"));
        assert_eq!((image.bundle_id, image.version, image.third_party), (None, None, false));
    }

    #[test]
    fn macos_rows_of_three_ages() {
        let image = read(
            "0x7fff9d469000 - 0x7fff9d46efff +com.apple.TCC (1.0 - 1) <C53628CA-0C75-34B6-AE6E-8BCF8A3ED099> /S/TCC.framework/Versions/A/TCC",
        );
        assert_eq!((image.name.as_str(), image.bundle_id.as_deref()), ("TCC", Some("com.apple.TCC")));
        assert_eq!((image.version.as_deref(), image.third_party), (Some("1.0 - 1"), true));
        let image = read(
            "  0x1017ff000 -  0x101885fff +com.A.iTube (x86_64)  <7B639009-221F-3815-A7A3-657098146F8A> /U/iTube.app/Contents/MacOS/iTube",
        );
        assert_eq!((image.arch, image.version), (Some(Arch::X86_64), None));
        let image =
            read("0x100000000 - 0x100000ff7 +com.foo.bar 1.0 (1) /Applications/bar.app/Contents/MacOS/bar");
        assert_eq!((image.name.as_str(), image.bundle_id.as_deref()), ("bar", Some("com.foo.bar")));
        assert_eq!((image.id, image.version.as_deref()), (None, Some("1.0 (1)")));
        let image = read(
            "0x1000 - 0x1fff libSystem.B.dylib 125.2.11 (compatibility 1.0.0) <> /usr/lib/libSystem.B.dylib",
        );
        assert_eq!(image.name, "libSystem.B.dylib");
        assert_eq!(image.version.as_deref(), Some("125.2.11 (compatibility 1.0.0)"));
        let image = read("0x1000 - 0x1fff Quake 3 (1.0) <> /Applications/Quake 3.app/Contents/MacOS/Quake 3");
        assert_eq!((image.name.as_str(), image.version.as_deref()), ("Quake 3", Some("1.0")));
    }

    #[test]
    fn fillers_and_unknown_ends() {
        let image = read(
            "               0x0 - 0xffffffffffffffff ??? (*) <00000000-0000-0000-0000-000000000000> ???",
        );
        assert_eq!((image.name.as_str(), image.id, image.path), ("???", None, None));
        let image = read("0x10a6c9000 - ???  com.foo (1.0) <7B639009-221F-3815-A7A3-657098146F8A> /foo");
        assert_eq!(image.end_address, None);
        let image = read("0x1000 - 0x1fff");
        assert_eq!(image.name, "");
        assert_eq!(read("0x1000 - 0x1fff a <> /a").id, None);
        assert_eq!(read("0x1000 - 0x1fff a unknown-arch  <> /a").arch, Some(Arch::Unknown));
        let image = read("0x1000 - 0x1fff std::pair<int> arm64  <debeff4e26534f38e59bc9de7b8daade> /a");
        assert_eq!((image.name.as_str(), image.id.is_some()), ("std::pair<int>", true));
    }

    #[test]
    fn ranges_that_cannot_be() {
        let row = ImageRow::read(b"0x2000 - 0x1fff app arm64 <> /app").unwrap();
        assert_eq!((row.oddity, row.image.end_address), (Some("it ends before it begins"), None));
        let row = ImageRow::read(b"0x11112222333344445 - 0x11112222333344446 app").unwrap();
        assert!(row.oddity.is_some());
        for line in [
            "",
            "0x1000",
            "0x1000 -",
            "0x1000 + 0x2000 app",
            "0x1000 - app",
            "1000 - 2000 app",
            "0x1-0x2 app",
        ] {
            assert!(ImageRow::read(line.as_bytes()).is_none(), "{line}");
        }
    }
}
