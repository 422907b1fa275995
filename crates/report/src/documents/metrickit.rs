//! MetricKit's payloads: a day's diagnostics of an app, each of a process that ran at its own time.

use crate::json::{self, Json, Member};
use crate::metrickit::{LISTS, TIMES, beside, payloads};
use crate::{Detected, Limits, detect};

/// A payload for each diagnostic of a payload of several, or of a list of payloads, with the position in the input where the diagnostic begins. `None`
/// where there is nothing to divide, or something is amiss: then the payload is read as one.
///
/// All of them state the payload's time, and the first has what else the payload says.
pub(super) fn diagnostics(input: &[u8], start: usize) -> Option<Vec<(usize, Vec<u8>)>> {
    let has = |word: &[u8]| memchr::memmem::find(input, word).is_some();
    if !has(b"Diagnostics\"") && !has(b"Metrics\"") {
        return None;
    }
    if detect(input) != Detected::MetricKit {
        return None;
    }
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, &Limits::default());
    let payload = outcome.value.filter(|_| outcome.problem.is_none())?;
    // What follows would belong to nothing.
    if !input.get(outcome.end..)?.trim_ascii().is_empty() {
        return None;
    }
    let documents: Vec<_> = payloads(&payload)
        .into_iter()
        .enumerate()
        .flat_map(|(position, single)| {
            let around = if position == 0 { bytes(input, beside(&payload)) } else { Vec::new() };
            divided(input, single, &around)
        })
        .collect();
    (documents.len() > 1).then_some(documents)
}

/// A document for each diagnostic; `around` goes into the first.
fn divided(input: &[u8], payload: &Json<'_>, around: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let list =
        |member: &Member<'_>| LISTS.iter().find(|(list, _)| *list == member.name()).map(|(list, _)| *list);
    let lists = payload.members().iter().filter_map(|member| Some((list(member)?, member.value.items())));
    let items: Vec<(&str, &Json<'_>)> =
        lists.flat_map(|(list, items)| items.iter().map(move |item| (list, item))).collect();
    if items.len() < 2 {
        let inside = input.get(payload.span()).and_then(|whole| whole.get(1..)).unwrap_or_default();
        return vec![(payload.span().start, [b"{", around, inside, b"\n"].concat())];
    }
    let is_time =
        |member: &&Member<'_>| TIMES.contains(&&*member.name()) && member.value.span().len() < MAX_TIME;
    let of_all = payload.members().iter().filter(is_time);
    let others = payload.members().iter().filter(|member| list(member).is_none() && !is_time(member));
    let (of_all, of_first) = (bytes(input, of_all), [around, bytes(input, others).as_slice()].concat());
    let document = |(position, (list, item)): (usize, (&str, &Json<'_>))| {
        let first = if position == 0 { of_first.as_slice() } else { &[] };
        let item_bytes = input.get(item.span()).unwrap_or_default();
        let parts = [b"{", of_all.as_slice(), first, b"\"", list.as_bytes(), b"\":[", item_bytes, b"]}\n"];
        (item.span().start, parts.concat())
    };
    items.into_iter().enumerate().map(document).collect()
}

/// No time takes more; what every document repeats must be small.
const MAX_TIME: usize = 64;

/// Members as they stand in the input, a comma behind each.
fn bytes<'m>(input: &[u8], members: impl Iterator<Item = &'m Member<'m>>) -> Vec<u8> {
    let member = |member: &Member<'_>| {
        let span = member.name_span().start..member.value.span().end;
        [input.get(span).unwrap_or_default(), b","].concat()
    };
    members.flat_map(member).collect()
}
