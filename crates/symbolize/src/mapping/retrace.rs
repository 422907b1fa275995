//! Obfuscated frames into those of the source.
//!
//! The rules are those of R8's `retrace`, whose own cases are tests here.

use super::Mapping;
use super::members::{Group, Member, groups};

/// A frame of the source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MappedFrame {
    /// The class, with its package.
    pub class: String,
    /// `void total(int)`: what the method takes and gives, or its bare name where the mapping does not have it.
    pub signature: String,
    /// The method's name.
    pub method: String,
    /// The source file's name.
    pub file: String,
    /// The line.
    pub line: Option<u32>,
}

/// What a mapping makes of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Retraced {
    /// The mapping does not have its class.
    Unknown,
    /// It is none of the source: the compiler moved code of other methods there.
    Removed,
    /// What may have run there: inline chains, each innermost first. Nothing tells several of them apart.
    Frames(Vec<Vec<MappedFrame>>),
}

/// Goes through the frames of a stack, innermost first: what one of them is may rest on the one before.
#[derive(Debug)]
pub struct Retracer<'m, B> {
    pub(super) mapping: &'m Mapping<B>,
    /// The type of what was thrown, until the first frame.
    thrown: Option<String>,
    /// The line of the moved code that was called.
    outline: Option<u32>,
}

/// What may stand for one frame at most; more than any real build has.
const MAX_CANDIDATES: usize = 64;

impl<'m, B: AsRef<[u8]>> Retracer<'m, B> {
    /// Begins a stack.
    pub fn new(mapping: &'m Mapping<B>) -> Self {
        Self { mapping, thrown: None, outline: None }
    }

    /// Tells of which type the exception is whose stack follows, as the report names it; gives its own name.
    pub fn exception(&mut self, class: &str) -> Option<&'m str> {
        self.thrown = Some(class.to_owned());
        self.outline = None;
        self.mapping.class(class)
    }

    /// What a frame is; `file` and `line` are as the report states them.
    pub fn frame(&mut self, class: &str, method: &str, file: &str, line: Option<u32>) -> Retraced {
        let thrown = self.thrown.take();
        let outline = self.outline.take();
        let (mapping, known) = (self.mapping, self.mapping.class(class));
        let (Some(original), Some(body)) = (known, mapping.body(class)) else { return Retraced::Unknown };
        let groups = groups(body, method);
        let mut line = line.filter(|line| *line > 0);
        if let (Some(inner), Some(outer)) = (outline, line) {
            let sites =
                groups.iter().filter(|group| group.contains(outer)).flat_map(|group| &group.call_sites);
            line = sites.clone().find(|(from, _)| *from == inner).map(|(_, to)| *to).or(line);
        }
        let place = ObfuscatedFrame { mapping, original, file, line };
        let selected = select(&groups, line);
        if selected.is_empty() {
            let frame = place.frame(original, method, method.to_owned(), place.line);
            return Retraced::Frames(vec![vec![frame]]);
        }
        if selected.iter().all(|group| group.is_outline) {
            self.outline = line;
        }
        let is_only_outer =
            line.is_none() && selected.iter().all(|group| group.range.is_some_and(|range| range != (0, 0)));
        let mut candidates = Vec::new();
        for group in selected {
            let from = if is_only_outer { group.chain.len().saturating_sub(1) } else { 0 };
            let chain = group.chain.get(from..).unwrap_or_default();
            let chain = trimmed(group, chain, thrown.as_deref(), mapping);
            candidates.extend(place.expand(group, chain, is_only_outer));
            if candidates.len() > MAX_CANDIDATES {
                break;
            }
        }
        candidates.retain(|candidate| !candidate.is_empty());
        candidates.sort_by_cached_key(|chain| {
            chain
                .iter()
                .map(|frame| (frame.signature.clone(), frame.line, frame.class.clone()))
                .collect::<Vec<_>>()
        });
        candidates.dedup();
        candidates.truncate(MAX_CANDIDATES);
        if candidates.is_empty() { Retraced::Removed } else { Retraced::Frames(candidates) }
    }
}

/// The groups that a line belongs to, else those that any line may belong to.
fn select<'g, 'm>(groups: &'g [Group<'m>], line: Option<u32>) -> Vec<&'g Group<'m>> {
    let of_line: Vec<_> = groups.iter().filter(|group| group.contains(line.unwrap_or(0))).collect();
    if !of_line.is_empty() {
        return of_line;
    }
    let without: Vec<_> = groups.iter().filter(|group| group.range.is_none()).collect();
    // A line that the mapping does not have is of another version; what it has would be a guess.
    if without.is_empty() && line.is_none() { groups.iter().collect() } else { without }
}

/// A chain without what is none of the source, and without what the compiler says that the runtime adds.
fn trimmed<'g, 'm, B: AsRef<[u8]>>(
    group: &Group<'_>,
    chain: &'g [Member<'m>],
    thrown: Option<&str>,
    mapping: &Mapping<B>,
) -> &'g [Member<'m>] {
    let mut chain = chain;
    if group.is_outline || group.is_synthesized {
        chain = chain.get(..chain.len().saturating_sub(1)).unwrap_or_default();
    }
    let Some(thrown) = thrown else { return chain };
    let descriptor = |class: &str| format!("L{};", class.replace('.', "/"));
    let own = mapping.class(thrown).map(descriptor);
    let is_thrown = |text: &str| text == descriptor(thrown) || own.as_deref() == Some(text);
    let removal = group.removals.iter().find(|(thrown, _)| is_thrown(thrown));
    removal.map_or(chain, |(_, count)| chain.get(*count..).unwrap_or_default())
}

/// Where a frame is.
struct ObfuscatedFrame<'p, B> {
    mapping: &'p Mapping<B>,
    original: &'p str,
    file: &'p str,
    line: Option<u32>,
}

impl<B: AsRef<[u8]>> ObfuscatedFrame<'_, B> {
    fn frame(&self, class: &str, method: &str, signature: String, line: Option<u32>) -> MappedFrame {
        let file = self.mapping.source_file(class).unwrap_or_else(|| source_file(class, self.file));
        MappedFrame { class: class.to_owned(), signature, method: method.to_owned(), file, line }
    }

    /// One chain for each set of lines that the members may stand for.
    fn expand(&self, group: &Group<'_>, chain: &[Member<'_>], is_only_outer: bool) -> Vec<Vec<MappedFrame>> {
        let mut chains = vec![Vec::new()];
        for member in chain {
            let lines = if is_only_outer { vec![None] } else { self.lines(group, member) };
            let lines = if lines.len() * chains.len() > MAX_CANDIDATES { vec![None] } else { lines };
            let class = member.holder.unwrap_or(self.original);
            let signature =
                format!("{} {}({})", member.returns, member.method, member.parameters.replace(", ", ","));
            let with = |chain: &Vec<MappedFrame>, line: &Option<u32>| {
                let mut chain = chain.clone();
                chain.push(self.frame(class, member.method, signature.clone(), *line));
                chain
            };
            chains =
                chains.iter().flat_map(|chain| lines.iter().map(move |line| with(chain, line))).collect();
        }
        chains
    }

    /// The lines of the source that a member may stand for here.
    fn lines(&self, group: &Group<'_>, member: &Member<'_>) -> Vec<Option<u32>> {
        let Some((first, last)) = member.original else { return vec![self.line] };
        let all = || match usize::try_from(last.saturating_sub(first)) {
            Ok(count) if count < MAX_CANDIDATES => (first..=last).map(Some).collect(),
            _ => vec![None],
        };
        match (group.range, self.line) {
            // 0 stands for no line.
            _ if first == 0 && last == 0 => vec![None],
            _ if first == last => vec![Some(first)],
            (Some((start, end)), _) if start == end => all(),
            (Some((start, _)), Some(line)) => {
                let line = first.saturating_add(line.saturating_sub(start));
                vec![Some(line.min(last))]
            }
            _ => all(),
        }
    }
}

/// The name of a class's source file, by custom: its outermost class's. `file` is what the frame states.
fn source_file(class: &str, file: &str) -> String {
    if file == "Native Method" {
        return file.to_owned();
    }
    let simple = class.rsplit('.').next().unwrap_or(class);
    let outer = match simple.split_once('$') {
        Some((outer, _)) if !outer.is_empty() => outer,
        _ => simple,
    };
    let is_kotlin = file.ends_with(".kt");
    match outer.strip_suffix("Kt").filter(|outer| !outer.is_empty()) {
        // Kotlin's functions outside of classes are in a class named for their file.
        Some(outer) if is_kotlin || !file.contains('.') => format!("{outer}.kt"),
        _ if is_kotlin => format!("{outer}.kt"),
        _ => format!("{outer}.java"),
    }
}
