//! Protocol buffers as they are on the wire: fields by number, without a schema.
//!
//! <https://protobuf.dev/programming-guides/encoding/>. Groups, which proto3 has no more, are broken input here.

use crate::text::lossy;

/// A field of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WireField<'d> {
    /// Its number in the schema.
    pub(crate) number: u32,
    pub(crate) value: Value<'d>,
    /// Where its value begins in the message.
    pub(crate) offset: usize,
}

/// What a field holds; which type that stands for is the schema's to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value<'d> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A text, bytes, a message, or packed numbers.
    Bytes(&'d [u8]),
}

impl<'d> Value<'d> {
    /// An unsigned number.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => Some(value),
            Self::Fixed32(value) => Some(u64::from(value)),
            Self::Bytes(_) => None,
        }
    }

    /// A text; what is no UTF-8 becomes U+FFFD.
    pub(crate) fn text(self) -> Option<String> {
        self.bytes().map(|bytes| lossy(bytes).into_owned())
    }

    /// The bytes of a text or message.
    pub(crate) fn bytes(self) -> Option<&'d [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Where a message is broken, in bytes from its start, and what was expected there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken {
    pub(crate) offset: usize,
    pub(crate) expected: &'static str,
}

/// Goes through the fields of one message. Ends at its end, or behind the first broken field.
#[derive(Clone, Debug)]
pub(crate) struct Message<'d> {
    bytes: &'d [u8],
    at: usize,
}

impl<'d> Message<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn varint(&mut self) -> Result<u64, Broken> {
        let start = self.at;
        let broken = |expected| Broken { offset: start, expected };
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(broken("the rest of a number, found the end"))?;
            self.at += 1;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(broken("a number of 64 bits, found a larger one"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(broken("a number of at most 10 bytes, found a longer one"))
    }

    fn take(&mut self, size: u64) -> Result<&'d [u8], Broken> {
        let broken = Broken { offset: self.at, expected: "as many bytes as the field states, found the end" };
        let end = usize::try_from(size).ok().and_then(|size| self.at.checked_add(size)).ok_or(broken)?;
        let bytes = self.bytes.get(self.at..end).ok_or(broken)?;
        self.at = end;
        Ok(bytes)
    }

    fn field(&mut self) -> Result<WireField<'d>, Broken> {
        let start = self.at;
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number =
            number.ok_or(Broken { offset: start, expected: "a field's number between 1 and 2^29 - 1" })?;
        let mut offset = self.at;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let size = self.varint()?;
                offset = self.at;
                Value::Bytes(self.take(size)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Broken { offset: start, expected: "a field of wire type 0, 1, 2 or 5" }),
        };
        Ok(WireField { number, value, offset })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let offset = self.at;
        let bytes = self.take(N as u64)?;
        bytes.try_into().map_err(|_| Broken { offset, expected: "a number of fixed size" })
    }
}

impl<'d> Iterator for Message<'d> {
    type Item = Result<WireField<'d>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Result<WireField<'_>, Broken>> {
        Message::new(bytes).collect()
    }

    #[test]
    fn fields_of_every_wire_type() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let fields: Vec<_> =
            read(&bytes).into_iter().map(|field| field.map(|field| (field.number, field.value))).collect();
        let expected = [
            Ok((1, Value::Varint(150))),
            Ok((2, Value::Bytes(b"hi"))),
            Ok((3, Value::Fixed32(1))),
            Ok((4, Value::Fixed64(2))),
        ];
        assert_eq!(fields, expected);
        let largest = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read(&largest), [Ok(WireField { number: 1, value: Value::Varint(u64::MAX), offset: 1 })]);
    }

    #[test]
    fn broken_fields_end_the_message() {
        for (bytes, offset) in [
            (&[0x08, 1, 0x08][..], 3),
            (&[0x08, 1, 0x12, 5, b'x'], 4),
            (&[0x08, 1, 0x0b], 2),
            (&[0x08, 1, 0x00, 1], 2),
            (&[0x08, 1, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], 3),
            (&[0x08, 1, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 13),
        ] {
            let fields = read(bytes);
            assert_eq!(fields.len(), 2, "{bytes:x?}");
            assert_eq!(fields[1].unwrap_err().offset, offset, "{bytes:x?}");
        }
    }
}
