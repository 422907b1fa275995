//! The two ways in which C++ names are read: common ones in one pass, the others by way of a tree.

mod common;

use backtrail_demangle::{Demangler, FoldTemplates, Options};
use common::{own, pairs};

/// Folding nothing gives the same text, and always goes by way of the tree.
fn by_way_of_the_tree() -> Options {
    let mut options = Options::default();
    options.fold_templates = Some(FoldTemplates { depth: u32::MAX, len: usize::MAX });
    options
}

fn assert_same(demangler: &mut Demangler, name: &str) {
    let expected = demangler.demangle(name, &by_way_of_the_tree()).map(str::to_owned);
    let got = demangler.demangle(name, &Options::default()).map(str::to_owned);
    assert_eq!(got, expected, "{name}");
}

#[test]
fn both_ways_write_the_same() {
    let mut demangler = Demangler::new();
    let lists = [own("itanium.tsv"), own("itanium-grammar.tsv"), own("itanium-beyond.tsv")];
    let corpus = backtrail_testkit::corpus_file("demangle/cpp-itanium.tsv");
    let corpus = corpus.map(|path| std::fs::read_to_string(path).unwrap()).unwrap_or_default();
    for (name, _) in lists.iter().flat_map(|list| pairs(list)).chain(pairs(&corpus)) {
        assert_same(&mut demangler, name);
        assert_same(&mut demangler, &format!("{name}.cold.1"));
    }
}

/// Names that are nearly common: each byte left out, doubled, or replaced by one that starts something else.
#[test]
fn both_ways_refuse_the_same() {
    let mut demangler = Demangler::new();
    for name in [
        "_ZN5boxes3BoxINS_4LeftERKNS_5RightEE3getIJiPcEEEvDpOT_",
        "_ZNKSt6vectorIPFvRKSsEZN1A1bEvEUlT_iE0_EC2ERKS7_",
        "_Z4workIZ4mainEUlvE_St4pairIiLj4EEET0_PA3_KcN1AIT_E1BE",
        "_ZZN1AIiE1fIJcEEEvvENKUlRT_RKS1_E1_clEPKvS4_",
        "_ZThn16_N1A1BB5cxx11D0Ev",
        "_ZTVN12_GLOBAL__N_11AILb1ELN1B1CE3EEE",
    ] {
        assert_same(&mut demangler, name);
        for at in 2..name.len() {
            assert_same(&mut demangler, &format!("{}{}", &name[..at], &name[at + 1..]));
            assert_same(&mut demangler, &format!("{}{}", &name[..=at], &name[at..]));
            for letter in "IEJNTSZDCLPRKUvilst_0123".chars() {
                assert_same(&mut demangler, &format!("{}{letter}{}", &name[..at], &name[at + 1..]));
            }
        }
    }
}
