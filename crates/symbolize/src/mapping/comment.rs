//! R8's comments: JSON, and JavaScript's laxer way of writing it (names without quotes, single quotes).

/// A comment's object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Comment(Vec<(String, Value)>);

/// A value within a comment. Numbers and words are kept as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// R8's comments nest twice.
const MAX_DEPTH: usize = 8;

impl Comment {
    /// Reads what stands behind `#`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parser = Parser { rest: text.trim_start() };
        match parser.value(0)? {
            Value::Object(members) => Some(Self(members)),
            _ => None,
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What kind of comment it is.
    pub(super) fn id(&self) -> Option<&str> {
        self.text("id")
    }

    /// The texts of a list.
    pub(super) fn texts(&self, key: &str) -> impl Iterator<Item = &str> {
        let list = match self.get(key) {
            Some(Value::List(list)) => list.as_slice(),
            _ => &[],
        };
        list.iter().filter_map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The pairs of numbers in an object.
    pub(super) fn numbers(&self, key: &str) -> Vec<(u32, u32)> {
        let members = match self.get(key) {
            Some(Value::Object(members)) => members.as_slice(),
            _ => &[],
        };
        let pair = |(name, value): &(String, Value)| match value {
            Value::Text(text) => Some((name.parse().ok()?, text.parse().ok()?)),
            _ => None,
        };
        members.iter().filter_map(pair).collect()
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    fn eat(&mut self, character: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.eat('{') {
            let mut members = Vec::new();
            while !self.eat('}') {
                let name = self.word()?;
                if !self.eat(':') {
                    return None;
                }
                members.push((name, self.value(depth + 1)?));
                self.eat(',');
            }
            return Some(Value::Object(members));
        }
        if self.eat('[') {
            let mut list = Vec::new();
            while !self.eat(']') {
                list.push(self.value(depth + 1)?);
                self.eat(',');
            }
            return Some(Value::List(list));
        }
        self.word().map(Value::Text)
    }

    /// A text in quotes, or what stands up to the next mark.
    fn word(&mut self) -> Option<String> {
        for quote in ['"', '\''] {
            if self.eat(quote) {
                let mut text = String::new();
                let mut characters = self.rest.char_indices();
                while let Some((at, character)) = characters.next() {
                    match character {
                        '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                        end if end == quote => {
                            self.rest = self.rest.get(at + quote.len_utf8()..)?;
                            return Some(text);
                        }
                        other => text.push(other),
                    }
                }
                return None;
            }
        }
        let is_end = |c: char| matches!(c, ',' | ':' | '}' | ']' | '{' | '[') || c.is_whitespace();
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing() {
        for text in [
            r#" {"id":"x.y","conditions":["throws(La/B;)"],"positions":{"1":4,"2":5}}"#,
            "{ id: 'x.y', conditions: ['throws(La/B;)'], 'positions': { '1': 4, '2': 5 } }",
        ] {
            let comment = Comment::read(text).unwrap();
            assert_eq!(comment.id(), Some("x.y"));
            assert_eq!(comment.texts("conditions").collect::<Vec<_>>(), ["throws(La/B;)"]);
            assert_eq!(comment.numbers("positions"), [(1, 4), (2, 5)]);
        }
        assert_eq!(Comment::read(r#"{"a":"q\"\u{e9}"}"#).unwrap().text("a"), Some("q\"u{e9}"));
        let deep = "{a:".repeat(1 << 16);
        for text in ["", "compiler: R8", "{", "{a", "{a:'", "{a:[", "[1]", deep.as_str()] {
            assert_eq!(Comment::read(text), None, "{}", text.get(..9).unwrap_or(text));
        }
    }
}
