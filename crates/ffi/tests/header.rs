//! The header says what the library has: functions, structures, numbers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use quote::ToTokens;
use std::collections::BTreeMap;
use std::path::Path;

/// The C declarations, without comments and preprocessor lines.
fn header() -> String {
    let text = std::fs::read_to_string(root().join("include/backtrail.h")).unwrap();
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = after.split_once("*/").unwrap().1;
    }
    plain.push_str(rest);
    plain
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A type without its spaces.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" *", "*").replace("* ", "*")
}

/// `const char *name` as type and name.
fn parameter(text: &str) -> (String, String) {
    let text = squeeze(text);
    let at = text.rfind([' ', '*']).map_or(0, |at| at + 1);
    (text[..at].trim().to_owned(), text[at..].to_owned())
}

/// Each function's result and parameters, as `type name` each.
fn functions_of_header() -> BTreeMap<String, Vec<(String, String)>> {
    let plain: String =
        header().lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let plain = plain.replacen("extern \"C\" {", "", 1);
    let mut functions = BTreeMap::new();
    for statement in plain.split(';') {
        let statement = squeeze(statement);
        if statement.starts_with("typedef") || statement.contains(['{', '}']) {
            continue;
        }
        let Some((head, parameters)) = statement.split_once('(') else { continue };
        let (result, name) = parameter(head);
        let parameters = parameters.trim_end_matches(')');
        let mut signature = vec![(result, String::new())];
        if parameters != "void" {
            signature.extend(parameters.split(',').map(parameter));
        }
        functions.insert(name, signature);
    }
    functions
}

fn structures_of_header() -> BTreeMap<String, Vec<(String, String)>> {
    let plain = header();
    let mut structures = BTreeMap::new();
    for part in plain.split("typedef struct ").skip(1) {
        let Some((name, body)) = part.split_once('{').filter(|(name, _)| !name.contains(';')) else {
            continue;
        };
        let (fields, after) = body.split_once('}').unwrap();
        assert_eq!(after.split(';').next().unwrap().trim(), name.trim());
        let fields = fields.split(';').filter(|field| !field.trim().is_empty()).map(parameter).collect();
        structures.insert(name.trim().to_owned(), fields);
    }
    structures
}

fn defines_of_header() -> BTreeMap<String, String> {
    let header = header();
    let defines = header.lines().filter_map(|line| line.strip_prefix("#define "));
    defines
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn items() -> Vec<syn::Item> {
    let mut items = Vec::new();
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        items.extend(syn::parse_file(&text).unwrap().items);
    }
    items
}

/// `BacktrailHangInfo` as `backtrail_hang_info`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn c_type(ty: &syn::Type) -> String {
    match ty {
        syn::Type::Ptr(pointer) => {
            let inner = c_type(&pointer.elem);
            let is_const = ty.to_token_stream().to_string().starts_with("* const");
            if is_const { format!("const {inner}*") } else { format!("{inner}*") }
        }
        syn::Type::Path(path) => match path.path.segments.last().unwrap().ident.to_string().as_str() {
            "u32" => "uint32_t".to_owned(),
            "i32" => "int32_t".to_owned(),
            "u64" => "uint64_t".to_owned(),
            "usize" => "size_t".to_owned(),
            "f64" => "double".to_owned(),
            "c_char" => "char".to_owned(),
            "c_void" => "void".to_owned(),
            ours => snake(ours),
        },
        other => panic!("no C type for {}", other.to_token_stream()),
    }
}

fn signature(function: &syn::Signature) -> Vec<(String, String)> {
    let result = match &function.output {
        syn::ReturnType::Default => "void".to_owned(),
        syn::ReturnType::Type(_, ty) => c_type(ty),
    };
    let mut signature = vec![(result, String::new())];
    for input in &function.inputs {
        let syn::FnArg::Typed(input) = input else { panic!("a method") };
        signature.push((c_type(&input.ty), input.pat.to_token_stream().to_string()));
    }
    signature
}

#[test]
fn functions() {
    let mut exported = BTreeMap::new();
    for item in items() {
        let syn::Item::Fn(function) = item else { continue };
        if function.sig.abi.is_some() {
            let is_exported = function
                .attrs
                .iter()
                .any(|attribute| attribute.to_token_stream().to_string().contains("no_mangle"));
            assert!(is_exported, "{} is not exported", function.sig.ident);
            exported.insert(function.sig.ident.to_string(), signature(&function.sig));
        }
    }
    assert!(exported.len() > 30 && exported.keys().all(|name| name.starts_with("backtrail_")));
    assert_eq!(functions_of_header(), exported);
}

#[test]
fn structures() {
    let mut structures = BTreeMap::new();
    for item in items() {
        let syn::Item::Struct(structure) = item else { continue };
        let is_c = structure
            .attrs
            .iter()
            .any(|attribute| attribute.to_token_stream().to_string().contains("repr (C)"));
        if is_c {
            let fields = structure.fields.iter();
            let fields =
                fields.map(|field| (c_type(&field.ty), field.ident.as_ref().unwrap().to_string())).collect();
            structures.insert(snake(&structure.ident.to_string()), fields);
        }
    }
    assert!(structures.len() >= 6);
    assert_eq!(structures_of_header(), structures);
}

#[test]
fn numbers() {
    let mut constants = BTreeMap::new();
    for item in items() {
        let syn::Item::Const(constant) = item else { continue };
        let name = constant.ident.to_string();
        if name.starts_with("BACKTRAIL_") {
            constants.insert(name, constant.expr.to_token_stream().to_string());
        }
    }
    constants.insert(
        "BACKTRAIL_ABI_VERSION".to_owned(),
        backtrail_ffi::status::backtrail_abi_version().to_string(),
    );
    assert!(constants.len() > 15);
    assert_eq!(defines_of_header(), constants);
}

#[test]
fn what_may_run_in_a_signal_handler_says_so_and_allocates_nothing_to_fail() {
    let text = std::fs::read_to_string(root().join("include/backtrail.h")).unwrap();
    let safe: Vec<_> =
        text.split("[signal-safe] */\n").skip(1).filter_map(|after| after.split('(').next()).collect();
    assert!(safe.len() >= 9, "{safe:?}");
    for item in items() {
        let syn::Item::Fn(function) = item else { continue };
        let name = function.sig.ident.to_string();
        let body = function.block.to_token_stream().to_string();
        if safe.iter().any(|safe| safe.trim_end().ends_with(&name)) {
            assert!(!body.contains("guard (") && !body.contains("quiet ("), "{name} keeps a message");
        }
    }
}
