//! The sections of a table, one after the other.

use super::collect::{Input, Numbers};
use super::encode::{ChunkEntry, Encoder};
use super::intern::Strings;
use super::names::Names;
use super::output::Output;
use super::place::Item;
use crate::body;
use crate::bytes::put_uleb;
use crate::error::Result;
use crate::format::{Counts, Facts, SectionKind};
use crate::packed;
use crate::types::Header;
use backtrail_core::{AddrRange, Svma};
use rayon::prelude::*;
use std::io::{Seek, Write};

/// Items that one worker encodes at a time.
const PART: usize = 256;
/// Parts that are encoded before they are written.
const WAVE: usize = 32;

/// Writes the names and the bodies, and gives what the index and the facts need.
pub(crate) fn names_and_bodies<W: Write + Seek + Send>(
    output: &mut Output<'_, W>,
    names: Names,
    input: &Input<'_>,
    numbers: &Numbers,
) -> Result<(Vec<ChunkEntry>, Counts)> {
    let items = &input.placed.items;
    let encode = |items: &[Item]| {
        let mut encoder = Encoder::new(input, numbers);
        items.iter().for_each(|item| encoder.item(item));
        (encoder.out, encoder.chunks, encoder.counts)
    };
    let encode_wave = |wave: &[Item]| wave.par_chunks(PART).map(encode).collect::<Vec<_>>();
    let (mut chunks, mut counts) = (Vec::new(), Counts::default());
    let mut waves = items.chunks(PART * WAVE);
    // What is ready is written while the next wave is encoded.
    let first = waves.next().unwrap_or_default();
    let (written, mut encoded) = rayon::join(|| names.write(output), || encode_wave(first));
    written?;
    output.pieces(SectionKind::Bodies, |section| {
        let mut position = 0;
        let mut put = |parts: Vec<(Vec<u8>, Vec<ChunkEntry>, Counts)>| -> Result<()> {
            for (bytes, part, counted) in parts {
                section.bytes(&bytes)?;
                let moved =
                    part.iter().map(|chunk| ChunkEntry { position: chunk.position + position, ..*chunk });
                chunks.extend(moved);
                position += bytes.len() as u64;
                counts.add(&counted);
            }
            Ok(())
        };
        for wave in waves {
            let (written, next) = rayon::join(|| put(std::mem::take(&mut encoded)), || encode_wave(wave));
            written?;
            encoded = next;
        }
        put(encoded)?;
        section.bytes(&[0; body::PADDING])
    })?;
    chunks.par_sort_by_key(|chunk| chunk.start);
    Ok((chunks, counts))
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.functions += other.functions;
        self.ranges += other.ranges;
        self.inlines += other.inlines;
        self.rows += other.rows;
        self.symbols += other.symbols;
        self.call_bytes += other.call_bytes;
    }
}

/// The index: where each chunk starts, in the image and in the bodies, and buckets of the addresses.
pub(crate) fn index(chunks: &[ChunkEntry]) -> Vec<u8> {
    let base = chunks.first().map_or(0, |chunk| chunk.start);
    let last = chunks.last().map_or(0, |chunk| chunk.start - base);
    let (shift, buckets) = buckets(chunks, base, last);
    let start_width = packed::width_of(last);
    let place_width = packed::width_of(chunks.iter().map(|chunk| chunk.position).max().unwrap_or(0));
    let bucket_width = packed::width_of(chunks.len() as u64);
    let mut out = vec![start_width, place_width, bucket_width, shift, 0, 0, 0, 0];
    out.extend((chunks.len() as u64).to_le_bytes());
    out.extend(base.to_le_bytes());
    out.extend((buckets.len() as u64).to_le_bytes());
    let rows = chunks.iter().map(|chunk| [chunk.start - base, chunk.position]);
    packed::put_rows(&mut out, [start_width, place_width], rows);
    packed::put(&mut out, bucket_width, buckets.into_iter());
    out
}

/// Divides the addresses into buckets of equal size, about one for each chunk: how far addresses are shifted to give
/// the bucket's number, and for each bucket, and behind the last one, the number of chunks that start before it.
fn buckets(chunks: &[ChunkEntry], base: u64, last: u64) -> (u8, Vec<u64>) {
    let mut shift = 0;
    while last >> shift > chunks.len() as u64 {
        shift += 1;
    }
    let mut buckets = Vec::new();
    let mut before = 0;
    for bucket in 0..=last >> shift {
        while chunks.get(before).is_some_and(|chunk| (chunk.start - base) >> shift < bucket) {
            before += 1;
        }
        buckets.push(before as u64);
    }
    buckets.push(chunks.len() as u64);
    (shift, buckets)
}

/// The files by number: the places of their paths among the texts that follow.
pub(crate) fn files(numbers: &Numbers, paths: &Strings) -> Vec<u8> {
    let mut texts = Vec::new();
    let mut places = Vec::with_capacity(numbers.files.len());
    for file in &numbers.files {
        let path = paths.get(file.0);
        places.push(texts.len() as u64);
        put_uleb(&mut texts, path.len() as u64);
        put_uleb(&mut texts, name_start(path) as u64);
        texts.extend(path);
    }
    let width = packed::width_of(texts.len() as u64);
    let mut out = vec![width, 0, 0, 0, 0, 0, 0, 0];
    out.extend((numbers.files.len() as u64).to_le_bytes());
    packed::put(&mut out, width, places.into_iter());
    out.extend(texts);
    out
}

/// Where the last piece of a path starts.
fn name_start(path: &[u8]) -> usize {
    let is_windows = matches!(path, [_, b':', ..] | [b'\\', b'\\', ..]);
    let separator = path.iter().rposition(|byte| *byte == b'/' || (is_windows && *byte == b'\\'));
    separator.map_or(0, |at| at + 1)
}

/// The regions of the image: sorted, none overlapping; code wins.
pub(crate) fn regions(sections: &[(AddrRange<Svma>, bool)]) -> Vec<u8> {
    let mut spans = Vec::new();
    for (range, is_code) in sections.iter().filter(|(range, _)| !range.is_empty()) {
        let (start, end) = (range.start().get(), range.end().get());
        let rank = u64::from(!is_code);
        spans.push(super::spans::Ranked { start, end, rank, owner: 0 });
    }
    spans.sort_by_key(|span| (span.start, span.rank));
    let mut out = Vec::new();
    for span in super::spans::paint(&spans) {
        out.extend(span.start.to_le_bytes());
        out.extend(span.end.to_le_bytes());
        out.push(u8::from(span.rank == 0));
    }
    out
}

/// The small facts.
pub(crate) fn facts(header: &Header, counts: Counts, languages: Vec<u16>) -> Facts {
    let name = header.name.clone().into_bytes();
    Facts { name, counts, languages, dropped: Vec::new() }
}
