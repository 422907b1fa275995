//! The explanation while it is written.

use super::Explanation;
use super::words::one_line;

/// No list of an explanation grows beyond this, whatever the report holds.
const MAX_ITEMS: usize = 24;

/// How lines begin that repeat what was raised.
const HEADER: [&str; 3] = ["Exception Type: ", "Exception Codes: ", "Exception Subtype: "];

/// Collects what the rules say. One rule leads: it gives the title and the first sentence. The others add.
#[derive(Debug, Default)]
pub(super) struct Draft {
    out: Explanation,
    what: String,
    place: Vec<String>,
    sentences: Vec<String>,
}

impl Draft {
    /// Gives the title and the sentence that says what happened.
    pub(super) fn lead(&mut self, title: impl AsRef<str>, what: impl AsRef<str>) {
        self.out.title = one_line(title.as_ref());
        if self.out.title.is_empty() {
            // A kind or message of nothing but white space: seen in damaged tracebacks.
            "The report does not tell what happened".clone_into(&mut self.out.title);
        }
        self.what = one_line(what.as_ref());
    }

    /// Says where it happened; that comes right behind what happened.
    pub(super) fn place(&mut self, sentence: impl AsRef<str>) {
        push(&mut self.place, sentence.as_ref());
    }

    /// Adds a sentence to the summary.
    pub(super) fn say(&mut self, sentence: impl AsRef<str>) {
        push(&mut self.sentences, sentence.as_ref());
    }

    /// Quotes what the report says.
    pub(super) fn evidence(&mut self, line: impl AsRef<str>) {
        push(&mut self.out.evidence, line.as_ref());
    }

    /// Adds a cause, less likely than those before.
    pub(super) fn cause(&mut self, sentence: impl AsRef<str>) {
        push(&mut self.out.causes, sentence.as_ref());
    }

    /// Adds several causes.
    pub(super) fn causes(&mut self, sentences: &[&str]) {
        sentences.iter().for_each(|sentence| self.cause(sentence));
    }

    /// Adds a thing to do, after those before.
    pub(super) fn next(&mut self, sentence: impl AsRef<str>) {
        push(&mut self.out.next_steps, sentence.as_ref());
    }

    /// Adds several things to do.
    pub(super) fn nexts(&mut self, sentences: &[&str]) {
        sentences.iter().for_each(|sentence| self.next(sentence));
    }

    pub(super) fn finish(mut self) -> Explanation {
        // What was raised stands at the head of every output.
        self.out.evidence.retain(|line| !HEADER.iter().any(|key| line.starts_with(key)));
        let parts = std::iter::once(self.what).chain(self.place).chain(self.sentences);
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        self.out.summary = parts.join(" ");
        self.out
    }
}

/// Appends a line once; empty ones say nothing.
fn push(list: &mut Vec<String>, text: &str) {
    let line = one_line(text);
    if list.len() < MAX_ITEMS && !line.is_empty() && !list.contains(&line) {
        list.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fuzzer made a traceback whose exception has a name of white space only.
    #[test]
    fn a_title_of_white_space_is_said_to_be_none() {
        let mut draft = Draft::default();
        draft.lead(" \n\t", "It was raised.");
        assert_eq!(draft.out.title, "The report does not tell what happened");
    }
}
