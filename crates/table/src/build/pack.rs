//! Packs names: chooses the dictionary and finds the copies.

use crate::text::{COPY, LITERAL, LONG, MAX_DICTIONARY, MIN_COPY, MIN_LONG};

/// Length of what is looked for when the dictionary is chosen.
const GRAM: usize = 8;
/// Bits of the table that counts these.
const GRAM_BITS: u32 = 20;
/// Bytes that go into the dictionary at a time.
const SEGMENT: usize = 56;
/// Bytes that are looked at to choose them.
const MAX_SAMPLE: usize = 6 << 20;

/// Bytes of the dictionary for so many bytes of names.
fn dictionary_size(total: usize) -> usize {
    (total / 48).min(MAX_DICTIONARY)
}

/// Chooses the parts of names that are worth keeping for copies. The names come in an order that is always the same.
pub(crate) fn choose_dictionary<'a>(names: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let total: usize = names.clone().map(<[u8]>::len).sum();
    let size = dictionary_size(total);
    let stride = total.div_ceil(MAX_SAMPLE).max(1);
    let mut sample = Vec::new();
    for name in names.step_by(stride) {
        sample.extend_from_slice(name);
    }
    let mut counts = vec![0u16; 1 << GRAM_BITS];
    for gram in sample.windows(GRAM) {
        if let Some(count) = counts.get_mut(gram_hash(gram)) {
            *count = count.saturating_add(1);
        }
    }
    let epoch = sample.len().div_ceil((size / SEGMENT).max(1)).max(SEGMENT);
    let mut dictionary = Vec::with_capacity(size);
    for part in sample.chunks(epoch) {
        if dictionary.len() + SEGMENT > size {
            break;
        }
        let segment = best_segment(part, &counts);
        for gram in segment.windows(GRAM) {
            if let Some(count) = counts.get_mut(gram_hash(gram)) {
                *count = 0;
            }
        }
        dictionary.extend_from_slice(segment);
    }
    dictionary
}

/// The segment whose grams occur most often.
fn best_segment<'a>(part: &'a [u8], counts: &[u16]) -> &'a [u8] {
    let worth = |gram: &[u8]| u64::from(counts.get(gram_hash(gram)).copied().unwrap_or(0).saturating_sub(1));
    let grams = SEGMENT - GRAM + 1;
    let (mut sum, mut best, mut start) = (0, 0, 0);
    let mut leaving = part.windows(GRAM);
    for (index, gram) in part.windows(GRAM).enumerate() {
        sum += worth(gram);
        if index >= grams
            && let Some(gram) = leaving.next()
        {
            sum -= worth(gram);
        }
        if sum > best {
            (best, start) = (sum, (index + 1).saturating_sub(grams));
        }
    }
    if best == 0 {
        return &[];
    }
    part.get(start..part.len().min(start + SEGMENT)).unwrap_or_default()
}

fn gram_hash(gram: &[u8]) -> usize {
    let word = gram.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - GRAM_BITS)) as usize
}

/// Finds parts of names in the dictionary.
pub(crate) struct Packer<'a> {
    dictionary: &'a [u8],
    /// Places in the dictionary by the hash of the key there, the last ones first.
    places: Vec<u32>,
    /// Where the places of each hash start, and where the last ones end.
    starts: Vec<u32>,
}

const KEY_BITS: u32 = 16;
/// Places that are compared before the best so far is good enough.
const MAX_TRIED: usize = 12;
/// A copy of this length is taken without looking for a better one behind the next byte.
const LONG_ENOUGH: usize = 24;
/// A copy from the dictionary takes three bytes.
const MIN_WORTH: usize = 4;

/// A copy that could be made.
#[derive(Clone, Copy, Default)]
struct Copy {
    size: usize,
    /// Place in the dictionary.
    from: usize,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(dictionary: &'a [u8]) -> Self {
        let keys = || dictionary.windows(MIN_COPY + 1).map(key_hash);
        let mut ends = vec![0u32; (1 << KEY_BITS) + 1];
        for hash in keys() {
            if let Some(count) = ends.get_mut(hash + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let starts = ends.clone();
        let mut places = vec![0; sum as usize];
        for (place, hash) in keys().enumerate() {
            // Filled from the end of each hash's part on, which starts where the next one's does.
            if let Some(end) = ends.get_mut(hash + 1) {
                *end -= 1;
                if let Some(slot) = places.get_mut(*end as usize) {
                    *slot = place as u32;
                }
            }
        }
        Self { dictionary, places, starts }
    }

    /// Appends a name, packed.
    pub(crate) fn pack(&self, name: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        let mut ready = None;
        while let Some(&byte) = name.get(at) {
            let found = ready.take().unwrap_or_else(|| self.find(name, at));
            if found.size >= MIN_WORTH {
                // A literal first, where that makes the copy so much longer.
                let is_long = found.size >= LONG_ENOUGH;
                let next = if is_long { Copy::default() } else { self.find(name, at + 1) };
                if next.size <= found.size + 1 {
                    put_copy(&found, out);
                    at += found.size;
                    continue;
                }
                ready = Some(next);
            }
            if byte >= COPY {
                out.push(LITERAL);
            }
            out.push(byte);
            at += 1;
        }
    }

    /// The longest copy of the bytes at a place of a name.
    fn find(&self, name: &[u8], at: usize) -> Copy {
        let rest = name.get(at..).unwrap_or_default();
        let mut best = Copy::default();
        let Some(key) = rest.get(..MIN_COPY + 1) else { return best };
        let hash = key_hash(key);
        let (start, end) = (self.start(hash), self.start(hash + 1));
        let word = rest.first_chunk().map(|word| u64::from_le_bytes(*word));
        for place in self.places.get(start..end).unwrap_or_default().iter().take(MAX_TRIED) {
            let there = self.dictionary.get(*place as usize..).unwrap_or_default();
            let size = match (word, there.first_chunk()) {
                (Some(word), Some(first)) => match word ^ u64::from_le_bytes(*first) {
                    0 if there.get(best.size) == rest.get(best.size) => common(there, rest),
                    0 => 0,
                    differ => differ.trailing_zeros() as usize / 8,
                },
                _ => common(there, rest),
            };
            if size > best.size && size > MIN_COPY {
                best = Copy { size, from: *place as usize };
            }
        }
        best.size = best.size.min(MIN_LONG + usize::from(u16::MAX));
        best
    }

    fn start(&self, hash: usize) -> usize {
        self.starts.get(hash).map_or(0, |start| *start as usize)
    }
}

/// How many bytes two places have in common.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    let (a_words, b_words) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let mut size = 0;
    for (a, b) in a_words.iter().zip(b_words) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return size + differ.trailing_zeros() as usize / 8;
        }
        size += 8;
    }
    let (a, b) = (a.get(size..).unwrap_or_default(), b.get(size..).unwrap_or_default());
    size + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn key_hash(key: &[u8]) -> usize {
    let [a, b, c, d, e] = key.first_chunk().copied().unwrap_or_default();
    let word = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]);
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - KEY_BITS)) as usize
}

fn put_copy(copy: &Copy, out: &mut Vec<u8>) {
    let code = COPY | ((copy.from >> 16) as u8) << 5;
    if copy.size < MIN_LONG {
        out.push(code | (copy.size - MIN_COPY) as u8);
    } else {
        out.push(code | LONG);
        out.extend(((copy.size - MIN_LONG) as u16).to_le_bytes());
    }
    out.extend((copy.from as u16).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::unpack;

    fn names() -> Vec<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for number in 0..3000 {
            let part = "N5boost4asio".repeat(number % 9);
            names.push(
                format!("_ZNSt6vectorI{part}5Thing{}E{number}IiSaIiEEE9push_backEOi", number % 31)
                    .into_bytes(),
            );
        }
        names.push("no ASCII: größer, 日本".into());
        names.push(b"\xff\x80\xfe not UTF-8 \x00".to_vec());
        names.push(Vec::new());
        names.push(b"N5boost4asio".repeat(6000));
        names
    }

    #[test]
    fn names_read_back_and_are_short() {
        let names = names();
        let dictionary = choose_dictionary(names.iter().map(Vec::as_slice));
        let packer = Packer::new(&dictionary);
        let (mut packed, mut text, mut sum) = (Vec::new(), Vec::new(), 0);
        for name in &names {
            packed.clear();
            packer.pack(name, &mut packed);
            text.clear();
            text.extend(b"before");
            assert_eq!(unpack(&packed, &dictionary, &mut text), Some(()));
            assert_eq!(text.strip_prefix(b"before"), Some(name.as_slice()));
            sum += packed.len();
        }
        let raw: usize = names.iter().map(Vec::len).sum();
        assert!(!dictionary.is_empty() && sum * 3 < raw, "{sum} of {raw} bytes");
    }

    #[test]
    fn broken_names_end() {
        let mut text = Vec::new();
        assert_eq!(unpack(b"ab\x80", b"dictionary", &mut text), None);
        assert_eq!(text, b"ab");
        assert_eq!(unpack(b"\x80\x08\x00", b"dictionary", &mut text), None);
        assert_eq!(unpack(b"\xff", b"dictionary", &mut text), None);
        let (dictionary, bomb) = (vec![b'x'; 1 << 17], b"\x9e\xff\xff\x00\x00".repeat(40));
        text.clear();
        assert_eq!(unpack(&bomb, &dictionary, &mut text), None);
        assert!(text.len() <= crate::text::MAX_TEXT);
    }
}
