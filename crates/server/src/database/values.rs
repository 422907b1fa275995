//! What goes into the database as parameters, and comes out of its rows.

use super::{DatabaseError, Result};
use rusqlite::types::{ToSqlOutput, ValueRef};

/// Which column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ColumnRef<'a> {
    At(usize),
    Named(&'a str),
}

/// What names a column.
pub(crate) trait Column: Copy {
    fn place(&self) -> ColumnRef<'_>;
}

impl Column for usize {
    fn place(&self) -> ColumnRef<'_> {
        ColumnRef::At(*self)
    }
}

impl Column for &str {
    fn place(&self) -> ColumnRef<'_> {
        ColumnRef::Named(self)
    }
}

/// What may be in a column.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    /// Also what is true (1) or false (0).
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

#[cfg(feature = "postgres")]
impl Value {
    /// The same as a parameter. What is none may be none of any type.
    pub(super) fn given(&self) -> Given<'_> {
        match self {
            Self::Null => Given::Integer(None),
            Self::Integer(number) => Given::Integer(Some(*number)),
            Self::Text(text) => Given::Text(Some(text)),
            Self::Bytes(bytes) => Given::Bytes(Some(bytes)),
        }
    }
}

/// What columns are read as.
pub(crate) trait FromValue: Sized {
    fn from_value(value: Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Integer(number) = value { Some(number) } else { None }
    }
}

impl FromValue for u8 {
    fn from_value(value: Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Option<Self> {
        Some(i64::from_value(value)? != 0)
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Null = value { Some(None) } else { T::from_value(value).map(Some) }
    }
}

/// A parameter: of a type that is known even where there is no value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    Integer(Option<i64>),
    Text(Option<&'a str>),
    Bytes(Option<&'a [u8]>),
}

impl rusqlite::ToSql for Given<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Integer(Some(number)) => ValueRef::Integer(number),
            Self::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(Some(bytes)) => ValueRef::Blob(bytes),
            _ => ValueRef::Null,
        }))
    }
}

/// What may be a parameter.
pub(crate) trait Give {
    /// That there is no value.
    const NONE: Given<'static>;
    fn given(&self) -> Given<'_>;
}

impl Give for i64 {
    const NONE: Given<'static> = Given::Integer(None);
    fn given(&self) -> Given<'_> {
        Given::Integer(Some(*self))
    }
}

impl Give for u8 {
    const NONE: Given<'static> = Given::Integer(None);
    fn given(&self) -> Given<'_> {
        Given::Integer(Some(i64::from(*self)))
    }
}

impl Give for bool {
    const NONE: Given<'static> = Given::Integer(None);
    fn given(&self) -> Given<'_> {
        Given::Integer(Some(i64::from(*self)))
    }
}

impl Give for str {
    const NONE: Given<'static> = Given::Text(None);
    fn given(&self) -> Given<'_> {
        Given::Text(Some(self))
    }
}

impl Give for String {
    const NONE: Given<'static> = Given::Text(None);
    fn given(&self) -> Given<'_> {
        Given::Text(Some(self))
    }
}

impl Give for Vec<u8> {
    const NONE: Given<'static> = Given::Bytes(None);
    fn given(&self) -> Given<'_> {
        Given::Bytes(Some(self))
    }
}

impl<T: Give + ?Sized> Give for &T {
    const NONE: Given<'static> = T::NONE;
    fn given(&self) -> Given<'_> {
        T::given(self)
    }
}

impl<T: Give> Give for Option<T> {
    const NONE: Given<'static> = T::NONE;
    fn given(&self) -> Given<'_> {
        self.as_ref().map_or(T::NONE, T::given)
    }
}

/// The parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::database::Give::given(&$value)),*] as &[$crate::database::Given<'_>]
    };
}
pub(crate) use params;

/// That a row may not be there.
pub(crate) trait OptionalExtension<T> {
    /// The row; `None` where there is none.
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(found) => Ok(Some(found)),
            Err(DatabaseError::NoRow) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
