//! The debuginfod client, against a server that misbehaves and against the real one.

mod faults;
mod real;
