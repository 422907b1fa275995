//! The methods of a class.

use super::comment::Comment;

/// One line of a method: what its obfuscated lines were.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Member<'m> {
    /// Obfuscated lines, both ends included. `None` where the line states none, or an end before the start.
    pub(super) range: Option<(u32, u32)>,
    pub(super) returns: &'m str,
    /// The class that it is of, where that is another one.
    pub(super) holder: Option<&'m str>,
    pub(super) method: &'m str,
    pub(super) parameters: &'m str,
    /// Lines of the source, both ends included; the same twice for a single line. `None` where the line states none, or an
    /// end before the start.
    pub(super) original: Option<(u32, u32)>,
    /// The obfuscated name.
    pub(super) name: &'m str,
}

impl<'m> Member<'m> {
    /// Reads a line; `None` where it is of a field or no member's.
    pub(super) fn read(line: &'m str) -> Option<Self> {
        let (left, name) = line.trim().rsplit_once(" -> ")?;
        let (head, rest) = left.split_once('(')?;
        let (parameters, tail) = rest.split_once(')')?;
        let (head, qualified) = head.rsplit_once(' ')?;
        let (range, returns) = split_range(head);
        let (holder, method) = match qualified.rsplit_once('.') {
            Some((holder, method)) => (Some(holder), method),
            None => (None, qualified),
        };
        let is_name = !method.is_empty() && !name.is_empty();
        let original = tail.strip_prefix(':').and_then(original_lines);
        is_name.then_some(Self { range, returns, holder, method, parameters, original, name })
    }
}

/// `1:2:void`, split; the range is `None` where there is none that makes sense.
fn split_range(text: &str) -> (Option<(u32, u32)>, &str) {
    let parts = || {
        let (start, rest) = text.split_once(':')?;
        let (end, rest) = rest.split_once(':')?;
        Some((start.parse::<u32>().ok()?, end.parse::<u32>().ok()?, rest))
    };
    match parts() {
        Some((start, end, rest)) => (Some((start, end)).filter(|(start, end)| start <= end), rest),
        None => (None, text),
    }
}

fn original_lines(text: &str) -> Option<(u32, u32)> {
    match text.split_once(':') {
        Some((start, end)) => {
            Some((start.parse().ok()?, end.parse().ok()?)).filter(|(start, end)| start <= end)
        }
        None => text.parse().ok().map(|line| (line, line)),
    }
}

/// Lines of one method with the same obfuscated lines: an inline chain, innermost first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Group<'m> {
    pub(super) range: Option<(u32, u32)>,
    pub(super) chain: Vec<Member<'m>>,
    /// Whether the outermost one is code of several methods that was moved into one of its own.
    pub(super) is_outline: bool,
    /// Whether the outermost one was made up by the compiler.
    pub(super) is_synthesized: bool,
    /// Where such moved code is called: its own line, and the line that stands for it here.
    pub(super) call_sites: Vec<(u32, u32)>,
    /// Frames to leave out where an exception of that type was thrown right here.
    pub(super) removals: Vec<(String, usize)>,
}

impl Group<'_> {
    pub(super) fn contains(&self, line: u32) -> bool {
        self.range.is_some_and(|(start, end)| (start..=end).contains(&line))
    }

    fn apply(&mut self, comment: &Comment) {
        match comment.id() {
            Some("com.android.tools.r8.outline") => self.is_outline = true,
            Some("com.android.tools.r8.synthesized") => self.is_synthesized = true,
            Some("com.android.tools.r8.outlineCallsite") => self.call_sites = comment.numbers("positions"),
            Some("com.android.tools.r8.rewriteFrame") => {
                let within = |text: &str, word: &str| {
                    Some(text.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(')')?.to_owned())
                };
                let count = |text: &str| within(text, "removeInnerFrames")?.parse().ok();
                let Some(count) = comment.texts("actions").find_map(count) else { return };
                let types = comment.texts("conditions").filter_map(|text| within(text, "throws"));
                self.removals.extend(types.map(|thrown| (thrown, count)));
            }
            _ => {}
        }
    }
}

/// More lines of one method than this are of no real program.
const MAX_GROUPS: usize = 100_000;

/// The groups of the methods with that obfuscated name, from the lines of their class.
pub(super) fn groups<'m>(lines: impl Iterator<Item = &'m str>, name: &str) -> Vec<Group<'m>> {
    let mut groups: Vec<Group<'m>> = Vec::new();
    // Whether comments that follow are about this method. Lines of other methods in between do not end a chain.
    let mut is_open = false;
    for line in lines {
        if let Some(comment) = line.trim_start().strip_prefix('#') {
            if let Some(group) = groups.last_mut().filter(|_| is_open)
                && let Some(comment) = Comment::read(comment)
            {
                group.apply(&comment);
            }
            continue;
        }
        let member = Member::read(line);
        let Some(member) = member.filter(|member| member.name == name) else {
            is_open = false;
            continue;
        };
        is_open = true;
        if let Some(group) = groups.last_mut().filter(|group| group.range.is_some())
            && group.range == member.range
        {
            group.chain.push(member);
            continue;
        }
        if groups.len() >= MAX_GROUPS {
            break;
        }
        groups.push(Group {
            range: member.range,
            chain: vec![member],
            is_outline: false,
            is_synthesized: false,
            call_sites: Vec::new(),
            removals: Vec::new(),
        });
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_lines() {
        let member = Member::read("    4:5:int some.Other.mango(float,int[]):121:122 -> s").unwrap();
        assert_eq!((member.range, member.returns, member.holder), (Some((4, 5)), "int", Some("some.Other")));
        assert_eq!((member.method, member.parameters, member.name), ("mango", "float,int[]", "s"));
        assert_eq!(member.original, Some((121, 122)));
        let member = Member::read("void <init>() -> <init>").unwrap();
        assert_eq!((member.range, member.original, member.method), (None, None, "<init>"));
        assert_eq!(Member::read("1:2:int a():7 -> b").unwrap().original, Some((7, 7)));
        assert_eq!(Member::read("5:3:void a() -> b").unwrap().range, None);
        assert_eq!(Member::read("2:5:void a():5:2 -> b").unwrap().original, None, "ends before it starts");
        for line in ["int x -> y", "", "a -> b:", "void f( -> g", "-> ", "99999999999:1:void a() x"] {
            assert_eq!(Member::read(line), None, "{line}");
        }
    }

    #[test]
    fn neighbours_among_lines_of_one_method_are_a_chain() {
        let text = "1:1:void a():3:3 -> x\n1:1:void b():4 -> x\n1:1:void c():5:5 -> y\n1:1:void d():6:6 -> x\n\
                    2:2:void e():7:7 -> x\n1:1:void f():8:8 -> x";
        let found = groups(text.lines(), "x");
        let names: Vec<Vec<_>> =
            found.iter().map(|group| group.chain.iter().map(|member| member.method).collect()).collect();
        assert_eq!(names, [vec!["a", "b", "d"], vec!["e"], vec!["f"]]);
    }
}
