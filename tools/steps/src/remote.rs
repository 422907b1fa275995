//! A client of gdb's remote protocol, as `qemu -g` speaks it: just what stepping needs.
//! gdb's manual, appendix E.

use crate::Result;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A target that stands still between requests.
pub(crate) struct Remote {
    write: TcpStream,
    read: BufReader<TcpStream>,
    acknowledges: bool,
}

/// Why the target stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// A step is done, or a breakpoint reached.
    Trap,
    /// This signal (gdb's number) is about to be delivered.
    Signal(u8),
    /// It has ended.
    Ended,
}

/// gdb's number of `SIGTRAP`.
const TRAP: u8 = 5;

impl Remote {
    pub(crate) fn connect(port: u16) -> Result<Self> {
        let mut last = String::new();
        for _ in 0..200 {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => return Self::new(stream),
                Err(error) => last = error.to_string(),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("nobody listens at port {port}: {last}"))
    }

    fn new(stream: TcpStream) -> Result<Self> {
        let configured = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(60))))
            .and_then(|()| stream.try_clone());
        let read = BufReader::new(configured.map_err(|error| error.to_string())?);
        let mut remote = Self { write: stream, read, acknowledges: true };
        remote.ask("qSupported:xmlRegisters=i386,arm,aarch64;qXfer:features:read+")?;
        if remote.ask("QStartNoAckMode")? == b"OK" {
            remote.acknowledges = false;
        }
        remote.ask("?")?;
        // Which registers `g` gives depends on whether their description was read.
        remote.ask("qXfer:features:read:target.xml:0,7ff")?;
        Ok(remote)
    }

    /// Sends a request and gives its answer.
    pub(crate) fn ask(&mut self, request: &str) -> Result<Vec<u8>> {
        let sum = request.bytes().fold(0u8, u8::wrapping_add);
        let packet = format!("${request}#{sum:02x}");
        self.write.write_all(packet.as_bytes()).map_err(|error| error.to_string())?;
        self.answer().map_err(|error| format!("{request}: {error}"))
    }

    fn answer(&mut self) -> std::result::Result<Vec<u8>, std::io::Error> {
        let mut byte = [0];
        loop {
            self.read.read_exact(&mut byte)?;
            if byte == *b"$" {
                break;
            }
        }
        let mut answer = Vec::new();
        loop {
            self.read.read_exact(&mut byte)?;
            match byte[0] {
                b'#' => break,
                b'}' => {
                    self.read.read_exact(&mut byte)?;
                    answer.push(byte[0] ^ 0x20);
                }
                // How often the last byte is repeated.
                b'*' => {
                    self.read.read_exact(&mut byte)?;
                    let last = answer.last().copied().unwrap_or(b'0');
                    answer.extend(std::iter::repeat_n(last, usize::from(byte[0].saturating_sub(29))));
                }
                other => answer.push(other),
            }
        }
        self.read.read_exact(&mut [0; 2])?;
        if self.acknowledges {
            self.write.write_all(b"+")?;
        }
        Ok(answer)
    }

    /// The general registers, as gdb orders them.
    pub(crate) fn registers(&mut self) -> Result<Vec<u8>> {
        let answer = self.ask("g")?;
        // Registers that the target does not know come as x; those of interest never do.
        Ok(answer.chunks_exact(2).map(|pair| unhex(pair).unwrap_or(0)).collect())
    }

    pub(crate) fn memory(&mut self, address: u64, size: usize) -> Result<Option<Vec<u8>>> {
        let answer = self.ask(&format!("m{address:x},{size:x}"))?;
        if answer.len() != 2 * size {
            return Ok(None);
        }
        Ok(answer.chunks_exact(2).map(unhex).collect())
    }

    /// One instruction, with a signal delivered before it if there is one.
    pub(crate) fn step(&mut self) -> Result<Stop> {
        let answer = self.ask("s")?;
        self.stop(&answer)
    }

    /// Delivers a signal and runs to `address`, the handler's first instruction.
    pub(crate) fn deliver(&mut self, signal: u8, address: u64, kind: u8) -> Result<Stop> {
        self.ask(&format!("Z0,{address:x},{kind}"))?;
        let answer = self.ask(&format!("C{signal:02x}"))?;
        let stop = self.stop(&answer)?;
        if stop == Stop::Ended {
            return Err(format!("signal {signal} ended the program"));
        }
        self.ask(&format!("z0,{address:x},{kind}"))?;
        Ok(stop)
    }

    fn stop(&mut self, answer: &[u8]) -> Result<Stop> {
        match answer {
            [b'T' | b'S', high, low, ..] => match unhex(&[*high, *low]) {
                Some(TRAP) => Ok(Stop::Trap),
                Some(signal) => Ok(Stop::Signal(signal)),
                None => Err("an unreadable stop".to_owned()),
            },
            [b'W' | b'X', ..] => Ok(Stop::Ended),
            // What the program printed.
            [b'O', ..] => {
                let next = self.answer().map_err(|error| error.to_string())?;
                self.stop(&next)
            }
            other => Err(format!("the target answers {:?} to a step", String::from_utf8_lossy(other))),
        }
    }

    /// The kernel's list of facts about the process: pairs of a tag and a value.
    pub(crate) fn auxiliary_vector(&mut self) -> Result<Vec<u8>> {
        let answer = self.ask("qXfer:auxv:read::0,1000")?;
        match answer.split_first() {
            Some((b'l' | b'm', data)) => Ok(data.to_vec()),
            _ => Err("the target has no auxiliary vector".to_owned()),
        }
    }

    pub(crate) fn kill(&mut self) {
        let sum = b'k';
        // Nobody answers this one.
        let _ = self.write.write_all(format!("$k#{sum:02x}").as_bytes());
    }
}

fn unhex(pair: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(pair).ok()?;
    u8::from_str_radix(text, 16).ok()
}
