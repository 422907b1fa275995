//! Forms as crash reporters send them: `multipart/form-data` (RFC 7578), at hand as a whole.

use futures_util::FutureExt as _;
use futures_util::stream;
use multer::Multipart;
use multer::bytes::Bytes;
use std::convert::Infallible;
use std::fmt;

/// A field of a form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormField {
    /// What it is called.
    pub name: String,
    /// The name of the file that it is, if it is one.
    pub file_name: Option<String>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What is no form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormError(String);

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected multipart/form-data: {}", self.0)
    }
}

impl std::error::Error for FormError {}

/// The fields of a form, whose type is the request's `Content-Type`.
///
/// # Errors
/// Where the type has no boundary, the bytes are no form, or there are more than `max_fields`.
pub fn fields(content_type: &str, bytes: Vec<u8>, max_fields: usize) -> Result<Vec<FormField>, FormError> {
    let failed = |error: multer::Error| FormError(error.to_string());
    let boundary = multer::parse_boundary(content_type).map_err(failed)?;
    let read = async {
        let all = stream::iter([Ok::<_, Infallible>(Bytes::from(bytes))]);
        let mut form = Multipart::new(all, boundary);
        let mut fields = Vec::new();
        while let Some(field) = form.next_field().await.map_err(failed)? {
            if fields.len() >= max_fields {
                return Err(FormError(format!("at most {max_fields} fields")));
            }
            let name = field.name().unwrap_or_default().to_owned();
            let file_name = field.file_name().map(str::to_owned);
            let bytes = Vec::from(field.bytes().await.map_err(failed)?);
            fields.push(FormField { name, file_name, bytes });
        }
        Ok(fields)
    };
    // All bytes are here, so that there is nothing to wait for.
    read.now_or_never().unwrap_or_else(|| Err(FormError("the form does not end".to_owned())))
}

/// The fields of a form that stands alone, without a request that names its boundary: its first line does. Old versions of
/// Electron send such a form inside of a field.
pub fn nested(bytes: &[u8], max_fields: usize) -> Option<Vec<FormField>> {
    let line = bytes.split(|byte| *byte == b'\n').next()?.strip_suffix(b"\r")?.strip_prefix(b"--")?;
    let boundary = std::str::from_utf8(line).ok().filter(|line| (1..=70).contains(&line.len()))?;
    let is_plain =
        boundary.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&byte));
    let content_type = format!("multipart/form-data; boundary=\"{boundary}\"");
    if is_plain { fields(&content_type, bytes.to_vec(), max_fields).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &[u8] = b"--XX\r\nContent-Disposition: form-data; name=\"prod\"\r\n\r\nDemo\r\n--XX\r\n\
        Content-Disposition: form-data; name=\"upload_file_minidump\"; filename=\"a.dmp\"\r\n\
        Content-Type: application/octet-stream\r\n\r\nMDMP\r\n\r\n--YY\r\n--XX--\r\n";

    #[test]
    fn fields_and_files() {
        for read in
            [fields("multipart/form-data; boundary=XX", FORM.to_vec(), 9).unwrap(), nested(FORM, 9).unwrap()]
        {
            assert_eq!(read.len(), 2);
            assert_eq!((read[0].name.as_str(), read[0].bytes.as_slice()), ("prod", b"Demo".as_slice()));
            assert_eq!(read[1].file_name.as_deref(), Some("a.dmp"));
            assert_eq!(read[1].bytes, b"MDMP\r\n\r\n--YY");
        }
    }

    #[test]
    fn what_is_cut_is_no_form() {
        let content_type = "multipart/form-data; boundary=XX";
        for cut in 0..FORM.len() - 4 {
            assert!(fields(content_type, FORM[..cut].to_vec(), 9).is_err(), "{cut}");
        }
        assert!(fields(content_type, FORM.to_vec(), 1).is_err(), "too many fields");
        assert!(fields("multipart/form-data", FORM.to_vec(), 9).is_err(), "no boundary");
        assert!(nested(b"MDMP", 9).is_none());
    }
}
