//! Rules that are read, those that are refused, and what fits.

use super::owner::Code;
use super::{Rules, RulesErrorKind};
use backtrail_model::OwnerKind;

fn rules(text: &str) -> Rules {
    Rules::parse(text.as_bytes(), "rules.toml").unwrap()
}

#[test]
fn owners_are_read_and_fit_all_of_their_conditions() {
    let rules = rules(
        "[[owner]]\nname = \"FooSDK\"\nversion = \"2.1\"\nsymbol = [\"FOO\", \"foo::\"]\nmodule = \"Demo*\"\n\
         [[owner]]\nkind = \"app\"\npath = [\"Sources/Demo\", \"/builds/app\"]\n\
         [[owner]]\nkind = \"app\"\nteam = \"ABCDE12345\"\n",
    );
    let [foo, own, team] = &rules.owners[..] else { panic!("{rules:?}") };
    assert_eq!(
        (foo.kind, foo.name.as_deref(), foo.version.as_deref()),
        (OwnerKind::Sdk, Some("FooSDK"), Some("2.1"))
    );
    let code = |symbol, module| Code { symbol: Some(symbol), module: Some(module), ..Code::default() };
    assert_eq!(foo.fit(&code("-[FOOClient send]", "DemoKit")).unwrap(), "rule: symbol FOO, module Demo*");
    assert!(foo.fit(&code("foo::bar()", "Demo")).is_some());
    assert!(foo.fit(&code("foo::bar()", "Other")).is_none());
    assert!(foo.fit(&code("-[Cart FOO]", "Demo")).is_none());
    assert!(foo.fit(&Code { symbol: Some("foo::bar()"), ..Code::default() }).is_none());
    let at = |path| Code { paths: [Some(path), None, None], ..Code::default() };
    for (path, is_own) in [
        ("/w/Sources/Demo/a.m", true),
        ("Sources/Demo/a.m", true),
        ("C:\\w\\Sources\\Demo\\a.c", true),
        ("/w/Sources/Demo.a(b.o)", false),
        ("/w/Sources/Demo2/a.m", false),
        ("/w/MySources/Demo/a.m", false),
        ("/builds/app/a.m", true),
        ("/w/builds/app/a.m", false),
    ] {
        assert_eq!(own.fit(&at(path)).is_some(), is_own, "{path}");
    }
    assert!(team.fit(&Code { team: Some("ABCDE12345"), ..Code::default() }).is_some());
    assert!(team.fit(&Code::default()).is_none());
}

#[test]
fn patterns_of_modules_have_stars() {
    for (pattern, text, expected) in [
        ("libfoo.so", "libfoo.so", true),
        ("libfoo.so", "libfoo.so.1", false),
        ("libfoo*", "libfoo.so.1", true),
        ("*foo*", "libfoo.so", true),
        ("lib*.so", "lib.so", true),
        ("lib*b.so*so", "libb.so", false),
        ("*", "", true),
        ("a*a", "a", false),
    ] {
        assert_eq!(super::text::fits(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn what_is_no_rule_is_refused_with_its_line() {
    for (text, kind, line, detail) in [
        ("\n[[owner]\n", RulesErrorKind::Syntax, 2, ""),
        ("[[owner]]\nname = \"a\"\nsymbl = \"b\"\n", RulesErrorKind::Syntax, 3, "unknown field `symbl`"),
        ("\n[[onwer]]\nname = \"a\"\n", RulesErrorKind::Syntax, 2, "unknown field `onwer`"),
        ("[[owner]]\nname = \"a\"\nsymbol = 3\n", RulesErrorKind::Syntax, 3, "a text or a list of texts"),
        ("[[owner]]\nname = \"a\"\nsymbol = [\"\"]\n", RulesErrorKind::Syntax, 3, "not empty"),
        ("[[owner]]\nname = \"a\"\nsymbol = []\n", RulesErrorKind::Syntax, 3, "not empty"),
        ("[[owner]]\nkind = \"vendor\"\n", RulesErrorKind::Syntax, 2, "unknown variant `vendor`"),
        ("\n\n[[owner]]\nname = \"a\"\n", RulesErrorKind::Rule, 3, "fits no code"),
        ("[[owner]]\nsymbol = \"a\"\n", RulesErrorKind::Rule, 1, "expected a `name`"),
    ] {
        let error = Rules::parse(text.as_bytes(), "rules.toml").unwrap_err();
        assert_eq!((error.kind(), error.line()), (kind, Some(line)), "{error}");
        assert!(
            error.to_string().contains(detail) && error.to_string().starts_with("rules.toml:"),
            "{error}"
        );
    }
    let error = Rules::parse(b"a = 1\n\xff", "rules.toml").unwrap_err();
    assert_eq!(error.to_string(), "rules.toml:2: expected UTF-8");
    assert_eq!(Rules::parse(&vec![b'#'; 5 << 20], "r").unwrap_err().kind(), RulesErrorKind::TooLarge);
    assert_eq!(rules(""), Rules::default());
}
