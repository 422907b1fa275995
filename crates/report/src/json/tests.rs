use super::*;
use crate::Limits;

fn parse(input: &str) -> Outcome<'_> {
    with_limits(input, &Limits::default())
}

fn with_limits<'d>(input: &'d str, limits: &Limits) -> Outcome<'d> {
    read(Box::leak(Box::default()), input.as_bytes(), 0, limits)
}

/// The same tree in serde_json's type, for comparing. Numbers by their text.
fn to_serde(json: &Json<'_>) -> serde_json::Value {
    use serde_json::Value as Other;
    match &json.value {
        Value::Null => Other::Null,
        Value::Bool(value) => Other::Bool(*value),
        Value::Number(text) => serde_json::from_str(text).unwrap(),
        Value::String(raw) => Other::String(raw.text().into_owned()),
        Value::Array(items) => Other::Array(items.iter().map(to_serde).collect()),
        Value::Object(members) => {
            Other::Object(members.iter().map(|m| (m.name().into_owned(), to_serde(&m.value))).collect())
        }
    }
}

#[test]
fn reads_what_serde_json_reads() {
    for text in [
        r#"{"a":[1,-2,3.5e-3,18446744073709551615],"b":{"c":null,"d":[true,false,{}],"e":[]}}"#,
        r#" [ "\u00e9\ud83d\ude00\n\"\\\/" , "é😀", "" ] "#,
        "-0.0",
        "\"x\"",
        "{}",
    ] {
        let outcome = parse(text);
        assert_eq!(outcome.problem, None, "{text}");
        let expected: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(to_serde(&outcome.value.unwrap()), expected, "{text}");
    }
}

#[test]
fn spans_are_the_values_own_bytes() {
    let text = r#"  {"a" : [ 10 , {"b":"c"} ] } tail"#;
    let outcome = parse(text);
    let root = outcome.value.unwrap();
    assert_eq!(&text[outcome.end..], " tail");
    let array = root.get("a").unwrap();
    assert_eq!(&text[array.span()], r#"[ 10 , {"b":"c"} ]"#);
    assert_eq!(&text[array.items()[1].span()], r#"{"b":"c"}"#);
    assert_eq!(&text[root.members()[0].name_span()], r#""a""#);
}

#[test]
fn what_came_before_a_broken_place_is_kept() {
    let cut = parse(r#"{"a":1,"b":[1,2,{"c":"d","e"#);
    assert_eq!(cut.problem.unwrap().expected, "the closing `\"` of a string, found the end of the file");
    let root = cut.value.unwrap();
    assert_eq!(root.get("a").unwrap().number(), Some(1));
    assert_eq!(root.get("b").unwrap().items()[2].get("c").unwrap().text().unwrap(), "d");

    let broken = parse(r#"[1 2]"#);
    assert_eq!(broken.problem.unwrap(), read::Problem { at: 3, expected: "`,` or `]` behind an item" });
    assert_eq!(broken.value.unwrap().items().len(), 1);
}

#[test]
fn a_text_of_several_lines_is_kept_as_far_as_it_goes() {
    let text = |input: &str, name: &str| match parse(input).value.unwrap().get(name).map(|json| &json.value) {
        Some(Value::String(raw)) => Some(raw.text().into_owned()),
        _ => None,
    };
    assert_eq!(text(r#"{"a":1,"b":"one\ntwo"#, "b").as_deref(), Some("one\ntwo"));
    assert_eq!(text("{\"b\":\"one\ntwo\\", "b").as_deref(), Some("one\ntwo\\"));
    assert_eq!(text(r#"{"b":"functio"#, "b"), None, "half a name is another name");
}

#[test]
fn every_cut_of_a_document_is_read_without_harm() {
    let text = r#"{"a":[1,{"b":"\u00e9\\","c":[[],{}]},null,true],"d":-12.5}"#;
    for end in 0..text.len() {
        if text.is_char_boundary(end) {
            assert!(parse(&text[..end]).problem.is_some(), "{end}");
        }
    }
}

#[test]
fn depth_and_count_are_bounded() {
    let deep = "[".repeat(1_000_000);
    let outcome = parse(&deep);
    assert_eq!(outcome.problem.unwrap().expected, "JSON that nests less deeply");
    let limits = Limits { max_json_values: 10, ..Limits::default() };
    let many = format!("[{}1]", "1,".repeat(100));
    let outcome = with_limits(&many, &limits);
    assert_eq!(outcome.problem.unwrap().expected, "fewer JSON values than the limit allows");
    assert_eq!(outcome.value.unwrap().items().len(), 9);
    // A limit that is too generous must not overflow the stack.
    let limits = Limits { max_json_depth: usize::MAX, ..Limits::default() };
    assert_eq!(with_limits(&deep, &limits).problem.unwrap().at, deep.len());
}

#[test]
fn numbers_and_truths_in_all_spellings() {
    let number = |text: &str| parse(text).value.unwrap().number();
    assert_eq!(number("18446744073709551615"), Some(u64::MAX));
    assert_eq!(number("18446744073709551616"), None);
    assert_eq!(number("-1"), Some(u64::MAX));
    assert_eq!(number("12.000"), Some(12));
    assert_eq!(number("12.5"), None);
    assert_eq!(number("1e3"), None);
    assert_eq!(number("\"0xff\""), Some(255));
    assert_eq!(number("\"0x+f\""), None);
    assert_eq!(number("\"77\""), Some(77));
    assert_eq!(number("true"), None);
    let truth = |text: &str| parse(text).value.unwrap().truth();
    for yes in ["true", "1", "\"1\"", "\"YES\"", "\"true\""] {
        assert_eq!(truth(yes), Some(true), "{yes}");
    }
    for no in ["false", "0", "\"0\"", "\"no\""] {
        assert_eq!(truth(no), Some(false), "{no}");
    }
    assert_eq!(truth("\"perhaps\""), None);
    assert_eq!(truth("[]"), None);
}

#[test]
fn broken_escapes_and_bytes_stay_readable() {
    assert_eq!(decode(br"a\qb\"), r"a\qb\");
    assert_eq!(decode(br"\u12"), r"\u12");
    assert_eq!(decode(br"\ud800x"), "\u{fffd}x");
    assert_eq!(decode(b"a\xffb"), "a\u{fffd}b");
    let text = "tab\t quote\" back\\ bell\u{7} é";
    assert_eq!(decode(encode(text).as_bytes()), text);
    assert_eq!(encode("\u{1}"), "\\u0001");
}

#[test]
fn names_that_come_twice_are_kept_twice_and_the_last_one_is_found() {
    let outcome = parse(r#"{"a":1,"a":2}"#);
    let root = outcome.value.unwrap();
    assert_eq!(root.members().len(), 2);
    assert_eq!(root.get("a").unwrap().number(), Some(2));
}
