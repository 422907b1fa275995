//! Protocol Buffers' wire format: fields by number, nothing of their meaning. (protobuf.dev, "Encoding".)

/// One field of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field<'d> {
    pub(crate) number: u64,
    pub(crate) value: Value<'d>,
    /// Where the field's value begins in the message.
    pub(crate) offset: usize,
}

/// A field's value, by its wire type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value<'d> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'d [u8]),
}

/// Where a message is broken, and what was expected there. The fields before are good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken {
    pub(crate) offset: usize,
    pub(crate) expected: &'static str,
}

/// The fields of a message, in its order. Ends behind the first broken one.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'d> {
    message: &'d [u8],
    at: usize,
}

impl<'d> Fields<'d> {
    pub(crate) fn new(message: &'d [u8]) -> Self {
        Self { message, at: 0 }
    }

    fn field(&mut self) -> Result<Field<'d>, Broken> {
        let key = self.varint()?;
        let offset = self.at;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => {
                return Err(Broken {
                    offset,
                    expected: "a field of a wire type that is in use (0, 1, 2 or 5)",
                });
            }
        };
        Ok(Field { number: key >> 3, value, offset })
    }

    fn varint(&mut self) -> Result<u64, Broken> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.message.get(self.at) else {
                return Err(Broken { offset: start, expected: "a number, found the end of the message" });
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Broken { offset: start, expected: "a number of at most 64 bits" })
    }

    fn take(&mut self, length: usize) -> Result<&'d [u8], Broken> {
        let end = self.at.checked_add(length);
        let Some(bytes) = end.and_then(|end| self.message.get(self.at..end)) else {
            return Err(Broken { offset: self.at, expected: "as many bytes as the field states" });
        };
        self.at += length;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let bytes = self.take(N)?;
        bytes.first_chunk().copied().ok_or(Broken { offset: self.at, expected: "a number of fixed size" })
    }
}

impl<'d> Iterator for Fields<'d> {
    type Item = Result<Field<'d>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.message.len();
        }
        Some(field)
    }
}

impl<'d> Value<'d> {
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => Some(number),
            Self::Fixed32(number) => Some(u64::from(number)),
            Self::Bytes(_) => None,
        }
    }

    pub(crate) fn bytes(self) -> Option<&'d [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn text(self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Vec<Result<Field<'_>, Broken>> {
        Fields::new(message).collect()
    }

    #[test]
    fn every_wire_type_is_read() {
        let message = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 2, b'h', b'i'],
            &[0x1d, 1, 0, 0, 0],
            &[0x21, 2, 0, 0, 0, 0, 0, 0, 0],
            &[0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ]
        .concat();
        let values: Vec<_> = fields(&message).into_iter().map(|field| field.unwrap()).collect();
        let expected = [
            (1, Value::Varint(150)),
            (2, Value::Bytes(b"hi")),
            (3, Value::Fixed32(1)),
            (4, Value::Fixed64(2)),
            (5, Value::Varint(u64::MAX)),
        ];
        assert_eq!(values.iter().map(|field| (field.number, field.value)).collect::<Vec<_>>(), expected);
        assert_eq!(values[1].value.text().as_deref(), Some("hi"));
    }

    #[test]
    fn a_broken_field_ends_the_message() {
        for (message, offset) in [
            (&[0x08][..], 1),
            (&[0x12, 5, b'h'], 2),
            (&[0x0b], 1),
            (&[0x1d, 1], 1),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 1),
        ] {
            let message = [&[0x08, 1], message].concat();
            let all = fields(&message);
            assert_eq!(all.len(), 2, "{message:?}");
            assert!(all[0].is_ok());
            assert_eq!(all[1].unwrap_err().offset, offset + 2, "{message:?}");
        }
    }
}
