//! Sentry's envelope: a line of JSON, then items, each a line of JSON and its bytes.
//!
//! <https://develop.sentry.dev/sdk/data-model/envelopes/>

use serde::Deserialize;
use std::fmt;

/// An envelope, apart.
#[derive(Clone, Debug, Default)]
pub struct Envelope<'e> {
    /// The event that it is about, as the client calls it.
    pub event_id: Option<String>,
    /// The address that the client sends to, with its key.
    pub dsn: Option<String>,
    /// Its items.
    pub items: Vec<Item<'e>>,
    /// Why the rest of it is not among the items.
    pub problem: Option<EnvelopeError>,
}

/// An item of an [`Envelope`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Item<'e> {
    /// What it is: `event`, `attachment`, `session`…
    pub kind: String,
    /// What an attachment is: `event.minidump`, `event.applecrashreport`…
    pub attachment_type: Option<String>,
    /// An attachment's name.
    pub file_name: Option<String>,
    /// Its bytes.
    pub bytes: &'e [u8],
}

/// What is no envelope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnvelopeError {
    /// Where in the bytes.
    pub offset: usize,
    /// What should be there.
    pub expected: &'static str,
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {} of the envelope", self.expected, self.offset)
    }
}

impl std::error::Error for EnvelopeError {}

#[derive(Deserialize)]
struct Header {
    event_id: Option<String>,
    dsn: Option<String>,
}

#[derive(Deserialize)]
struct ItemHeader {
    #[serde(rename = "type")]
    kind: String,
    length: Option<usize>,
    attachment_type: Option<String>,
    filename: Option<String>,
}

/// Bytes of a header's line.
const MAX_HEADER: usize = 64 << 10;

impl<'e> Envelope<'e> {
    /// Takes an envelope apart. Where an item is broken those before it are kept, and [`problem`](Self::problem) says so.
    ///
    /// # Errors
    /// Where it does not begin as an envelope does.
    pub fn parse(bytes: &'e [u8], max_items: usize) -> Result<Self, EnvelopeError> {
        let mut rest = Rest { bytes, offset: 0 };
        let header: Header = rest.json("a line with the envelope's header as JSON")?;
        let mut envelope = Self { event_id: header.event_id, dsn: header.dsn, ..Self::default() };
        loop {
            rest.skip_blank();
            if rest.left().is_empty() {
                return Ok(envelope);
            }
            if envelope.items.len() >= max_items {
                envelope.problem = Some(rest.error("no more items"));
                return Ok(envelope);
            }
            match item(&mut rest) {
                Ok(item) => envelope.items.push(item),
                Err(error) => {
                    envelope.problem = Some(error);
                    return Ok(envelope);
                }
            }
        }
    }
}

fn item<'e>(rest: &mut Rest<'e>) -> Result<Item<'e>, EnvelopeError> {
    let header: ItemHeader = rest.json("a line with an item's header as JSON")?;
    let bytes = match header.length {
        Some(length) => rest.take(length).ok_or_else(|| rest.error("as many bytes as the item states"))?,
        // Node's client states none: the item ends with its line.
        None => rest.line(),
    };
    Ok(Item { kind: header.kind, attachment_type: header.attachment_type, file_name: header.filename, bytes })
}

/// What was not read yet.
struct Rest<'e> {
    bytes: &'e [u8],
    offset: usize,
}

impl<'e> Rest<'e> {
    fn left(&self) -> &'e [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    fn error(&self, expected: &'static str) -> EnvelopeError {
        EnvelopeError { offset: self.offset, expected }
    }

    fn skip_blank(&mut self) {
        self.offset += self.left().iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
    }

    fn take(&mut self, length: usize) -> Option<&'e [u8]> {
        let taken = self.left().get(..length)?;
        self.offset += length;
        Some(taken)
    }

    fn line(&mut self) -> &'e [u8] {
        let left = self.left();
        let line = left.split(|byte| *byte == b'\n').next().unwrap_or_default();
        self.offset += (line.len() + 1).min(left.len());
        line
    }

    fn json<T: Deserialize<'e>>(&mut self, expected: &'static str) -> Result<T, EnvelopeError> {
        let offset = self.offset;
        let line = self.line();
        let line = line.get(..MAX_HEADER).unwrap_or(line);
        serde_json::from_slice(line).map_err(|_| EnvelopeError { offset, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds<'e>(envelope: &Envelope<'e>) -> Vec<(&'e [u8], String)> {
        envelope.items.iter().map(|item| (item.bytes, item.kind.clone())).collect()
    }

    #[test]
    fn items_with_and_without_a_length() {
        let bytes = b"{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\",\"dsn\":\"http://k@h/1\"}\n\
            {\"type\":\"attachment\",\"length\":5,\"attachment_type\":\"event.minidump\",\"filename\":\"a.dmp\"}\na\nb\nc\n\
            {\"type\":\"event\"}\n{\"x\":1}\n{\"type\":\"session\",\"length\":0}\n\n";
        let envelope = Envelope::parse(bytes, 10).unwrap();
        assert_eq!(envelope.event_id.as_deref(), Some("9ec79c33ec9942ab8353589fcb2e04dc"));
        let expected: [(&[u8], String); 3] =
            [(b"a\nb\nc", "attachment".into()), (b"{\"x\":1}", "event".into()), (b"", "session".into())];
        assert_eq!(kinds(&envelope), expected);
        assert_eq!(envelope.items[0].file_name.as_deref(), Some("a.dmp"));
        assert_eq!(envelope.problem, None);
    }

    #[test]
    fn what_is_cut_keeps_what_came_before() {
        let bytes =
            b"{}\n{\"type\":\"event\",\"length\":2}\n{}\n{\"type\":\"attachment\",\"length\":99}\nshort";
        for cut in 0..bytes.len() {
            if let Ok(envelope) = Envelope::parse(&bytes[..cut], 10) {
                assert!(envelope.items.len() <= 1);
            }
        }
        let envelope = Envelope::parse(bytes, 10).unwrap();
        assert_eq!(envelope.items.len(), 1);
        let problem = envelope.problem.unwrap();
        assert_eq!((problem.offset, problem.expected), (bytes.len() - 5, "as many bytes as the item states"));
        assert_eq!(Envelope::parse(bytes, 0).unwrap().items.len(), 0);
        assert!(Envelope::parse(b"no envelope", 10).is_err());
        assert!(Envelope::parse(b"", 10).is_err());
    }
}
