//! C++ names against what LLVM's `llvm-cxxfilt` makes of them.

mod common;

use backtrail_demangle::{Demangler, FoldTemplates, Options, Scheme, demangle, scheme};
use common::{assert_all, differences, own, pairs};

/// The names of `tests/data/names.cpp`, by clang 22.
#[test]
fn names_of_every_construct() {
    assert_all(&pairs(&own("itanium.tsv")));
}

/// Names made at random from the grammar; what they stand for is nonsense, how they are read is not.
#[test]
fn names_from_the_grammar() {
    assert_all(&pairs(&own("itanium-grammar.tsv")));
}

/// What other demanglers read and LLVM's does not.
#[test]
fn names_that_llvm_does_not_read() {
    assert_all(&pairs(&own("itanium-beyond.tsv")));
}

/// The list of real and constructed names in the corpus: every one as expected.
#[test]
fn the_corpus_list() {
    let Some(path) = backtrail_testkit::corpus_file("demangle/cpp-itanium.tsv") else { return };
    let list = std::fs::read_to_string(path).unwrap();
    let pairs = pairs(&list);
    let differences = differences(&pairs, &Options::default());
    println!("{} of {} names as expected", pairs.len() - differences.len(), pairs.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn marks_around_a_name() {
    for (name, readable) in [
        ("__Z1fv", "f()"),
        ("\u{1}_Z1fv", "f()"),
        ("_Z1fv.cold", "f() (.cold)"),
        ("_Z1fv.part.0.constprop.1.isra.2", "f() (.part.0.constprop.1.isra.2)"),
        ("_Z1fv.llvm.123456", "f() (.llvm.123456)"),
        ("_Z1fv.resume", "f() (.resume)"),
        ("_Z1fv@plt", "f()@plt"),
        ("_ZN3std1fEv@@GLIBCXX_3.4.21", "std::f()@@GLIBCXX_3.4.21"),
        ("_Z1fv.cold@plt", "f() (.cold)@plt"),
        ("____Z1fv_block_invoke_2.cold.1", "invocation function for block in f()"),
        ("_GLOBAL__sub_I_main.cpp", "global constructors keyed to main.cpp"),
        ("_GLOBAL__I__Z1fv", "global constructors keyed to f()"),
        ("__GLOBAL__sub_D__Z1fv", "global destructors keyed to f()"),
    ] {
        assert_eq!(scheme(name), Some(Scheme::Itanium), "{name}");
        assert_eq!(demangle(name, &Options::default()), readable);
    }
}

#[test]
fn not_names() {
    for name in [
        "",
        "_",
        "_Z",
        "__Z",
        "___Z",
        "_Z1",
        "_Z1fvE",
        "_Z0",
        "_ZN",
        "_ZNE",
        "_Z1fv$",
        "_ZS_",
        "_ZT",
        "main",
        "_Zé",
        "_ZcvT_IIS0_EE",
        "_ZcvT_IS_E",
        "_Zcv1BIRT_EIS1_E",
        "_ZcvT_IIS0_EE",
        "_ZcvT_IS_E",
    ] {
        assert_eq!(demangle(name, &Options::default()), name);
    }
    // The length ends within a character.
    assert_eq!(demangle("_Z1é", &Options::default()), "_Z1é");
    assert_eq!(demangle("_Z2é", &Options::default()), "é");
}

fn with(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

#[test]
fn without_parameters() {
    let options = with(|options| options.parameters = false);
    for (name, readable) in [
        ("_Z1fi", "f"),
        ("_ZNK3Box3getIiEET_c", "Box::get<int>"),
        ("_ZZ1fiENKUlvE_clEv", "f(int)::'lambda'()::operator()"),
        ("_ZThn8_N3Box3getEv", "non-virtual thunk to Box::get"),
        ("_Z1fi.cold", "f (.cold)"),
        ("_ZTI3Box", "typeinfo for Box"),
    ] {
        assert_eq!(demangle(name, &options), readable);
    }
}

#[test]
fn without_return_types_of_functions_around() {
    let options = with(|options| options.local_return_types = false);
    // As c++filt of binutils has them, but for how what has no name is called.
    for (mangled, readable) in [
        ("_ZZ1fIiEbT_ENKUlvE_clEv", "f<int>(int)::'lambda'()::operator()() const"),
        (
            "_ZZ1fIiEbT_ENKUlS0_E_clIcEEDaS0_.part.0",
            "auto f<int>(int)::'lambda'(int)::operator()<char>(int) const (.part.0)",
        ),
        ("_Z1gIXadL_Z1fIiEbT_EEEvv", "void g<&bool f<int>(int)>()"),
        ("_Z1fIiEbT_", "bool f<int>(int)"),
        ("_Z1fIiEbT_.cold", "bool f<int>(int) (.cold)"),
    ] {
        assert_eq!(demangle(mangled, &options), readable, "{mangled}");
    }
}

#[test]
fn without_return_types() {
    let options = with(|options| options.return_types = false);
    assert_eq!(demangle("_ZNK3Box3getIiEET_c", &options), "Box::get<int>(char) const");
    assert_eq!(demangle("_Z1fIiEPFvT_Ec", &options), "f<int>(char)");
    assert_eq!(demangle("_Z1gPFivE", &options), "g(int (*)())");
}

#[test]
fn folded_templates() {
    let name = "_Z1fISt6vectorISt4pairIicESaIS2_EEEvT_";
    for (depth, len, readable) in [
        (0, usize::MAX, "void f<...>(std::vector<...>)"),
        (1, usize::MAX, "void f<std::vector<...>>(std::vector<std::pair<...>, std::allocator<...>>)"),
        (
            2,
            usize::MAX,
            "void f<std::vector<std::pair<...>, std::allocator<...>>>\
             (std::vector<std::pair<int, char>, std::allocator<std::pair<...>>>)",
        ),
        (u32::MAX, 12, "void f<...>(std::vector<...>)"),
        (u32::MAX, 0, "void f<...>(std::vector<...>)"),
    ] {
        let options = with(|options| options.fold_templates = Some(FoldTemplates { depth, len }));
        assert_eq!(demangle(name, &options), readable, "depth {depth}, len {len}");
    }
}

#[test]
fn a_demangler_forgets_the_name_before() {
    let list = own("itanium.tsv");
    let mut kept = Demangler::new();
    for (name, _) in pairs(&list) {
        let expected = Demangler::new().demangle(name, &Options::default()).map(str::to_owned);
        assert_eq!(kept.demangle(name, &Options::default()).map(str::to_owned), expected);
    }
}

#[test]
fn demanglers_can_be_given_to_threads() {
    fn check<T: Send + Sync>() {}
    check::<Demangler>();
    check::<Options>();
}
