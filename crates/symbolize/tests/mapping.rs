//! Mapping files of R8: its own cases, and larger files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::unreachable, reason = "a test that fails")]

use backtrail_symbolize::mapping::{Mapping, Retraced, Retracer};

/// Cases whose answer is another one than R8's, and why.
const DIFFERENCES: [(&str, &str); 0] = [];

#[test]
fn r8s_own_cases() {
    let Some(directory) = backtrail_testkit::corpus_file("kinds/android-retrace") else { return };
    let mut cases: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 30);
    let mut wrong = Vec::new();
    for case in cases {
        let read = |name: &str| std::fs::read_to_string(case.join(name)).unwrap();
        let mapping = Mapping::new(read("mapping.txt").into_bytes()).unwrap();
        for (is_verbose, expected) in [(false, "retraced.txt"), (true, "retraced-verbose.txt")] {
            let found = mapping.retrace(&read("obfuscated.txt"), is_verbose);
            let is_named = DIFFERENCES.iter().any(|(name, _)| case.ends_with(name));
            if (found.trim_end() == read(expected).trim_end()) == is_named {
                wrong.push(format!("{} {expected}:\n{found}\nR8:\n{}", case.display(), read(expected)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} differ", wrong.join("\n"), wrong.len());
}

#[test]
fn what_a_mapping_does_not_have_stays() {
    let mapping = Mapping::new(b"x.Y -> a:\n  1:2:void f():3:4 -> b\n".as_slice()).unwrap();
    let text = "words\r\n\tat other.C.d(C.java:1)\r\n\tat a.b(S:1)\r\nlast";
    assert_eq!(
        mapping.retrace(text, false),
        "words\r\n\tat other.C.d(C.java:1)\r\n\tat x.Y.f(Y.java:3)\r\nlast"
    );
    let mut retracer = Retracer::new(&mapping);
    assert_eq!(retracer.frame("z", "b", "", None), Retraced::Unknown);
    let Retraced::Frames(frames) = retracer.frame("a", "b", "S", Some(9)) else {
        unreachable!("the class is known")
    };
    assert_eq!((frames[0][0].method.as_str(), frames[0][0].line), ("b", Some(9)), "no line of that build");
}

#[test]
fn a_file_of_a_real_app() {
    let Some(path) = backtrail_testkit::corpus_file("kinds/android-mapping/proguard-mapping.txt") else {
        return;
    };
    let mapping = Mapping::new(std::fs::read(path).unwrap()).unwrap();
    assert_eq!(mapping.head().id, None);
    let found = mapping.retrace("\tat android.support.constraint.ConstraintLayout.b(SourceFile:440)\n", true);
    assert_eq!(
        found,
        "\tat android.support.constraint.ConstraintLayout.void init(android.util.AttributeSet)(ConstraintLayout.java:440)\n"
    );
}

#[test]
fn a_source_file_may_have_parentheses() {
    let mapping = Mapping::new(
        b"shop.Cart -> c:\n  7:7:void add(int):200:200 -> a\n  8:9:int sum():30:31 -> a\n".as_slice(),
    )
    .unwrap();
    let found = mapping.retrace("\tat c.a(:app@12 (060-33):9) ~[x.jar:?]\n\tat c.a(S:7) (native)\n", false);
    assert_eq!(
        found,
        "\tat shop.Cart.sum(Cart.java:31) ~[x.jar:?]\n\tat shop.Cart.add(Cart.java:200) (native)\n"
    );
}

#[test]
fn what_the_compiler_made_up_is_no_frame() {
    let mapping = "# {'id':'com.android.tools.r8.mapping','version':'1.0'}\nshop.Cart$$Lambda -> l:\n  void run() -> a\n    # \
                   {'id':'com.android.tools.r8.synthesized'}\nshop.Cart -> c:\n  2:2:void pay():9 -> a\n";
    let mapping = Mapping::new(mapping.as_bytes()).unwrap();
    assert_eq!(
        mapping.retrace("\tat c.a(S:2)\n\tat l.a(Unknown Source)\n", false),
        "\tat shop.Cart.pay(Cart.java:9)\n"
    );
}

#[test]
fn candidates_with_callers_of_their_own_stand_by_their_place() {
    let mapping = "shop.Cart -> c:\n  1:1:void a.In.one(int):10:10 -> x\n  1:1:void add(int):11 -> x\n  2:2:void add(int):12 -> x\n  \
                   1:1:void a.In.two(int):20:20 -> x\n  1:1:void add(int,int):21 -> x\n";
    let mapping = Mapping::new(mapping.as_bytes()).unwrap();
    assert_eq!(
        mapping.retrace("  at c.x(S:1)\n", false),
        "  at a.In.one(In.java:10)\n  <OR> at a.In.two(In.java:20)\n  at shop.Cart.add(Cart.java:11)\n  <OR> at \
         shop.Cart.add(Cart.java:21)\n"
    );
}
