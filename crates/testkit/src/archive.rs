//! A writer of static archives. `ar(5)`.

/// How member names that do not fit their field are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArchiveStyle {
    /// In front of the member's data.
    Bsd,
    /// In a member of their own.
    Gnu,
}

fn member(name: &str, date: u64, prefix: &[u8], data: &[u8]) -> Vec<u8> {
    let size = prefix.len() + data.len();
    let header = format!("{name:<16}{date:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 644);
    let mut out = [header.as_bytes(), prefix, data].concat();
    if out.len() % 2 == 1 {
        out.push(b'\n');
    }
    out
}

/// An archive of members, each a name, a time and its bytes.
pub fn archive(style: ArchiveStyle, members: &[(&str, u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    let mut long_names = String::new();
    let mut rest = Vec::new();
    for (name, date, data) in members {
        let is_long = name.len() > 15 || name.contains(' ');
        rest.extend(match style {
            ArchiveStyle::Bsd if is_long => {
                let mut padded = name.as_bytes().to_vec();
                padded.resize(padded.len().next_multiple_of(8), 0);
                member(&format!("#1/{}", padded.len()), *date, &padded, data)
            }
            ArchiveStyle::Bsd => member(name, *date, &[], data),
            ArchiveStyle::Gnu if is_long => {
                let at = long_names.len();
                long_names += &format!("{name}/\n");
                member(&format!("/{at}"), *date, &[], data)
            }
            ArchiveStyle::Gnu => member(&format!("{name}/"), *date, &[], data),
        });
    }
    match style {
        ArchiveStyle::Bsd => out.extend(member("__.SYMDEF SORTED", 0, &[], &[0; 8])),
        ArchiveStyle::Gnu => {
            out.extend(member("/", 0, &[], &[0; 4]));
            out.extend(member("//", 0, &[], long_names.as_bytes()));
        }
    }
    out.extend(rest);
    out
}
