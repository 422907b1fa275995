//! Readable names in GNU's spelling; ours is LLVM's.

/// GNU keeps closing angle brackets apart, as C++98 wanted them, and marks clones in its own way.
pub(crate) fn spelled(name: &str) -> String {
    let mut gnu = String::with_capacity(name.len() + name.len() / 16);
    let mut rest = name;
    while let Some(at) = rest.find(['<', '>']) {
        let (before, brackets) = rest.split_at(at);
        gnu.push_str(before);
        let run = brackets.find(|character| !matches!(character, '<' | '>')).unwrap_or(brackets.len());
        let (run, after) = brackets.split_at(run);
        rest = after;
        if before.ends_with("operator") {
            push_operator(run, after, &mut gnu);
            continue;
        }
        let mut last = '\0';
        for bracket in run.chars() {
            gnu.extend((bracket == '>' && last == '>').then_some(' '));
            gnu.push(bracket);
            last = bracket;
        }
    }
    gnu.push_str(rest);
    let gnu = gnu.replace("std::nullptr_t", "decltype(nullptr)").replace(" const const", " const");
    let gnu = without_quotes(&gnu);
    match gnu.strip_suffix(')').and_then(|name| name.rsplit_once(" (.")) {
        Some((name, clone)) if !clone.contains(' ') => format!("{name} [clone .{clone}]"),
        _ => gnu,
    }
}

/// The brackets behind `operator`: what overloads `<` or `<<`, then perhaps the bracket of template arguments, which
/// GNU sets apart. Only in `operator<<(` do both belong to the operator.
fn push_operator(run: &str, after: &str, gnu: &mut String) {
    match run {
        "<<" if !after.starts_with('(') => gnu.push_str("< <"),
        "<<<" => gnu.push_str("<< <"),
        run => gnu.push_str(run),
    }
}

/// What has no name is `'lambda0'(int)` and `'unnamed'` for LLVM, `{lambda(int)#2}` and `{unnamed type#1}` for GNU.
fn without_quotes(name: &str) -> String {
    let mut gnu = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, quoted)) = rest.split_once('\'') {
        gnu.push_str(before);
        let Some((nameless, after)) = nameless(quoted) else {
            gnu.push('\'');
            rest = quoted;
            continue;
        };
        gnu.push_str(&nameless);
        rest = after;
    }
    gnu.push_str(rest);
    gnu
}

/// What stands for a nameless thing, from behind its opening quote, and what follows.
fn nameless(quoted: &str) -> Option<(String, &str)> {
    let (word, after) = quoted.split_once('\'')?;
    let digits = word.trim_start_matches(|character: char| character.is_ascii_alphabetic());
    // LLVM counts the second one from 0.
    let number: u64 = if digits.is_empty() { 1 } else { digits.parse::<u64>().ok()?.checked_add(2)? };
    match word.strip_suffix(digits)? {
        "unnamed" => Some((format!("{{unnamed type#{number}}}"), after)),
        "lambda" => {
            let (parameters, after) = after.split_at_checked(parenthesis(after)?)?;
            Some((format!("{{lambda{}#{number}}}", without_quotes(parameters)), after))
        }
        _ => None,
    }
}

/// The length of the parenthesis that the text begins with.
fn parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nameless_are_numbered_as_gnu_does() {
        assert_eq!(
            spelled("f()::'lambda'(int, int)::operator()(int, int) const"),
            "f()::{lambda(int, int)#1}::operator()(int, int) const"
        );
        assert_eq!(spelled("g<h()::'lambda0'(void (*)(int))>"), "g<h()::{lambda(void (*)(int))#2}>");
        assert_eq!(spelled("A::'unnamed1'::f('a')"), "A::{unnamed type#3}::f('a')");
        assert_eq!(spelled("f()::'lambda'("), "f()::'lambda'(");
    }

    #[test]
    fn names_are_spelled_spelled_does() {
        assert_eq!(spelled("A<B<C<int>>>::A()"), "A<B<C<int> > >::A()");
        assert_eq!(spelled("A::operator>>(int)"), "A::operator>>(int)");
        assert_eq!(spelled("void f<A<int>>(B<A<int>>*)"), "void f<A<int> >(B<A<int> >*)");
        assert_eq!(
            spelled("bool std::operator<<char, A<B<int>>>(int)"),
            "bool std::operator< <char, A<B<int> > >(int)"
        );
        assert_eq!(spelled("S& operator<<<T>(S&)"), "S& operator<< <T>(S&)");
        assert_eq!(spelled("A::operator-><B>()"), "A::operator-><B>()");
        // `use_facet<A const>` returns `T const&`.
        assert_eq!(spelled("A<int> const const& f<A<int> const>()"), "A<int> const& f<A<int> const>()");
        assert_eq!(spelled("foo(int) (.cold)"), "foo(int) [clone .cold]");
        assert_eq!(spelled("A::operator<<(std::nullptr_t)"), "A::operator<<(decltype(nullptr))");
    }
}
