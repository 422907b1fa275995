//! Mails as they are sent: bodies in quoted-printable and base64 (RFC 2045, 6.7 and 6.8), alone or as parts of one mail, or of a
//! box of mails.

use crate::apple_text::Lines;
use backtrail_core::{base64, base64_digit};

/// How a body is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    QuotedPrintable,
    Base64,
}

/// More parts are in no mail that somebody reads.
const MAX_BOUNDARIES: usize = 64;

/// A mail with its bodies as text; `None` where no body is encoded. Headers stay, and what is no text stays as it is written.
pub(super) fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    // The word of the header that no crash report has.
    memchr::memmem::find(text, b"ransfer-")?;
    let mut reader =
        Reader { boundaries: Vec::new(), announced: None, body: None, out: Vec::new(), found: false };
    for line in Lines::new(text, 0..text.len(), 1) {
        reader.line(line.bytes);
    }
    reader.close();
    reader.found.then_some(reader.out)
}

struct Reader<'t> {
    /// The lines that part a mail, without their dashes.
    boundaries: Vec<&'t [u8]>,
    /// What the headers say of the body that follows.
    announced: Option<Encoding>,
    /// The body that is gone through, where it is encoded.
    body: Option<(Encoding, Vec<&'t [u8]>)>,
    out: Vec<u8>,
    found: bool,
}

impl<'t> Reader<'t> {
    fn line(&mut self, line: &'t [u8]) {
        if self.body.is_some() {
            if self.is_end(line) {
                self.close();
            } else {
                if let Some((_, lines)) = &mut self.body {
                    lines.push(line);
                }
                return;
            }
        }
        if let Some(boundary) = boundary(line).filter(|_| self.boundaries.len() < MAX_BOUNDARIES) {
            self.boundaries.push(boundary);
        }
        if let Some(encoding) = encoding(line) {
            self.announced = encoding;
        }
        if line.trim_ascii().is_empty()
            && let Some(encoding) = self.announced.take()
        {
            self.body = Some((encoding, Vec::new()));
            self.found = true;
        }
        self.out.extend_from_slice(line);
        self.out.push(b'\n');
    }

    /// Whether a line ends a part, or begins another mail of a box.
    fn is_end(&self, line: &[u8]) -> bool {
        let parts = |rest: &[u8]| self.boundaries.iter().any(|boundary| rest.starts_with(boundary));
        line.strip_prefix(b"--").is_some_and(parts) || (line.starts_with(b"From ") && line.contains(&b'@'))
    }

    fn close(&mut self) {
        let Some((encoding, lines)) = self.body.take() else { return };
        match encoding {
            Encoding::QuotedPrintable => lines.iter().for_each(|line| quoted_printable(line, &mut self.out)),
            Encoding::Base64 => match unpadded(&lines).filter(|bytes| !bytes.contains(&0)) {
                Some(bytes) => {
                    self.out.extend(bytes);
                    self.out.push(b'\n');
                }
                None => self.out.extend(lines.join(&b'\n')),
            },
        }
    }
}

/// The encoding that a header states: `Content-Transfer-Encoding: base64`. `Some(None)` of one that leaves the text as it is.
fn encoding(line: &[u8]) -> Option<Option<Encoding>> {
    const HEADER: &[u8] = b"content-transfer-encoding:";
    let name = line.get(..HEADER.len()).filter(|name| name.eq_ignore_ascii_case(HEADER))?;
    let value = line.get(name.len()..)?.trim_ascii();
    let is = |word: &str| value.eq_ignore_ascii_case(word.as_bytes());
    Some(match () {
        () if is("quoted-printable") => Some(Encoding::QuotedPrintable),
        () if is("base64") => Some(Encoding::Base64),
        () => None,
    })
}

/// `Content-Type: multipart/mixed; boundary="===7=="`, also on a line of its own.
fn boundary(line: &[u8]) -> Option<&[u8]> {
    const WORD: &[u8] = b"boundary=";
    let rest = line.get(memchr::memmem::find(line, WORD)? + WORD.len()..)?;
    let (rest, end) = match rest.strip_prefix(b"\"") {
        Some(rest) => (rest, &b"\""[..]),
        None => (rest, &b"; \t"[..]),
    };
    let length = rest.iter().position(|byte| end.contains(byte)).unwrap_or(rest.len());
    rest.get(..length).filter(|boundary| !boundary.is_empty())
}

/// Adds a line; an equals sign at its end says that it goes on in the next.
fn quoted_printable(line: &[u8], to: &mut Vec<u8>) {
    let line = line.trim_ascii_end();
    let (line, goes_on) = line.strip_suffix(b"=").map_or((line, false), |line| (line, true));
    let mut rest = line;
    while let Some(at) = memchr::memchr(b'=', rest) {
        let (before, escape) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        to.extend_from_slice(before);
        let digit =
            |at: usize| char::from(*escape.get(at)?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let length = match (digit(1), digit(2)) {
            (Some(high), Some(low)) => {
                to.push(high << 4 | low);
                3
            }
            _ => {
                to.push(b'=');
                1
            }
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    to.extend_from_slice(rest);
    if !goes_on {
        to.push(b'\n');
    }
}

/// The bytes that lines of base64 stand for; `None` where they have anything else.
fn unpadded(lines: &[&[u8]]) -> Option<Vec<u8>> {
    let digits = lines.iter().flat_map(|line| line.trim_ascii()).copied().filter(|byte| *byte != b'=');
    digits.clone().all(|byte| base64_digit(byte).is_some()).then(|| base64(digits))
}

#[cfg(test)]
mod tests {
    use super::decoded;

    fn text(mail: &str) -> Option<String> {
        decoded(mail.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn bodies_of_mails() {
        let quoted =
            "Subject: x\nContent-Transfer-Encoding: quoted-printable\n\na=3D1 =C3=A9 long=\ner =zz\nb\n";
        assert_eq!(
            text(quoted).unwrap(),
            "Subject: x\nContent-Transfer-Encoding: quoted-printable\n\na=1 é longer =zz\nb\n"
        );
        let parts = "Content-Type: multipart/mixed; boundary=\"=7=\"\n\n--=7=\ncontent-transfer-encoding: BASE64\n\nUHJvY2Vz\nczogQQ==\n\
                     --=7=\nContent-Transfer-Encoding: 8bit\n\na=3D\n--=7=--\n";
        let found = text(parts).unwrap();
        assert!(found.contains("\nProcess: A\n--=7=\n") && found.contains("\na=3D\n--=7=--\n"), "{found}");
        // What is no text, or no base64, stays as it is written.
        for body in ["AAAA\n", "words, words\n"] {
            let mail = format!("Content-Transfer-Encoding: base64\n\n{body}");
            assert!(text(&mail).unwrap().contains(body.trim_end()));
        }
        assert_eq!(text("Transfer-Encoding: chunked\n\na=3D\n"), None);
        assert_eq!(text("a=3D\n"), None);
    }

    #[test]
    fn every_cut_is_read_without_harm() {
        let mail = "boundary=q\n\n--q\nContent-Transfer-Encoding: quoted-printable\n\n=3D=\n--q\nContent-Transfer-Encoding: base64\n\nQQ==\n";
        for end in 0..mail.len() {
            let _ = decoded(mail.get(..end).unwrap().as_bytes());
        }
    }
}
