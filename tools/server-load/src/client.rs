//! Just enough of HTTP/1.1 to ask this one server, on a connection that is kept: a client that costs little.

use crate::Result;
use std::io::{BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::net::TcpStream;

/// A connection to the server.
pub(crate) struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Result<Self> {
        let failed = |error| format!("{address}: {error}");
        let stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let reader = BufReader::new(stream.try_clone().map_err(failed)?);
        Ok(Self { stream, reader })
    }

    /// Sends a request, and gives the body of its answer, which must be a success.
    pub(crate) fn ask(&mut self, head: &str, body: &[&[u8]]) -> Result<Vec<u8>> {
        let (head, body) = self.answer(head, body)?;
        if head.starts_with("HTTP/1.1 200 ") {
            return Ok(body);
        }
        let status = head.lines().next().unwrap_or_default();
        Err(format!("{status}: {}", String::from_utf8_lossy(&body)))
    }

    /// Sends a request, and gives its answer: the lines of the head, and the body.
    pub(crate) fn answer(&mut self, head: &str, body: &[&[u8]]) -> Result<(String, Vec<u8>)> {
        let failed = |error: std::io::Error| error.to_string();
        let mut parts: Vec<_> =
            [head.as_bytes()].into_iter().chain(body.iter().copied()).map(IoSlice::new).collect();
        let mut parts = parts.as_mut_slice();
        while !parts.is_empty() {
            let count = self.stream.write_vectored(parts).map_err(failed)?;
            IoSlice::advance_slices(&mut parts, count);
        }
        let mut head = self.line()?;
        let mut length = None;
        let mut chunked = false;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            head = head + "\n" + &line;
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse::<usize>().ok();
            }
            chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                let size =
                    usize::from_str_radix(self.line()?.trim(), 16).map_err(|error| error.to_string())?;
                let mut piece = vec![0; size + 2];
                self.reader.read_exact(&mut piece).map_err(failed)?;
                piece.truncate(size);
                body.extend(piece);
                if size == 0 {
                    break;
                }
            }
        } else {
            body.resize(length.unwrap_or_default(), 0);
            self.reader.read_exact(&mut body).map_err(failed)?;
        }
        Ok((head, body))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
