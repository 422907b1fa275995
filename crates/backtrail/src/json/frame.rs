//! Frames, functions and symbols.

use super::Hex;
use backtrail_core::{Confidence, FrameAddress, Function, Svma, Symbol, SymbolInfo};
use backtrail_model::{Frame, Image, Owner};
use serde::Serialize;

/// One frame of a stack.
#[derive(Debug, Serialize)]
pub(super) struct FrameJson<'a> {
    pub(super) index: u32,
    address: Option<Hex>,
    image: Option<&'a str>,
    image_id: Option<String>,
    image_offset: Option<Hex>,
    relative_pc: Option<Hex>,
    trust: &'static str,
    functions: Vec<FunctionJson<'a>>,
    symbol: Option<SymbolJson<'a>>,
    function_offset: Option<Hex>,
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_offset: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack_pointer: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<Vec<FunctionJson<'a>>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    annotations: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerJson<'a>>,
}

/// Whose code a frame is.
#[derive(Debug, Serialize)]
struct OwnerJson<'a> {
    kind: &'static str,
    name: Option<&'a str>,
    version: Option<&'a str>,
    confidence: Option<&'static str>,
    how: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

fn owner(owner: &Owner) -> OwnerJson<'_> {
    OwnerJson {
        kind: owner.kind.as_str(),
        name: owner.name.as_deref(),
        version: owner.version.as_deref(),
        confidence: owner.confidence.map(Confidence::as_str),
        how: Some(&*owner.how).filter(|how| !how.is_empty()),
        file: owner.file.as_deref(),
    }
}

/// A function at an address, innermost first in its list.
#[derive(Debug, Serialize)]
pub struct FunctionJson<'a> {
    name: &'a str,
    linkage_name: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    inlined: bool,
}

/// A symbol table's answer, or the name that the report itself states.
#[derive(Debug, Serialize)]
pub struct SymbolJson<'a> {
    name: &'a str,
    linkage_name: Option<&'a str>,
    offset: Option<Hex>,
}

impl<'a> From<&'a Function> for FunctionJson<'a> {
    fn from(function: &'a Function) -> Self {
        Self {
            name: &function.name,
            linkage_name: function.linkage_name.as_deref(),
            file: function.file.as_deref(),
            line: function.line,
            column: function.column,
            inlined: function.inlined,
        }
    }
}

impl<'a> From<&'a Symbol> for SymbolJson<'a> {
    fn from(symbol: &'a Symbol) -> Self {
        Self {
            name: &symbol.name,
            linkage_name: symbol.linkage_name.as_deref(),
            offset: Some(Hex(symbol.offset)),
        }
    }
}

/// The frame as JSON shows it.
pub(super) fn frame<'a>(frame: &'a Frame, images: &'a [Image]) -> FrameJson<'a> {
    let image = frame.image.and_then(|index| images.get(index));
    let address = frame.address.map(FrameAddress::raw);
    let from_load = || address?.offset_from(image?.load_address);
    FrameJson {
        index: frame.index,
        address: address.map(Hex::from),
        image: image.map(|image| image.name.as_str()).or(frame.image_name.as_deref()),
        image_id: image.and_then(|image| image.id).map(|id| id.to_string()),
        image_offset: frame.image_offset.or_else(from_load).map(Hex),
        relative_pc: frame.relative_pc.map(Hex::from),
        trust: frame.trust.as_str(),
        functions: functions(frame),
        symbol: symbol(frame),
        function_offset: frame.function_offset.map(Hex),
        reason: frame.reason.map(backtrail_core::Reason::as_str),
        file_offset: frame.file_offset.map(|offset| Hex(offset.get())),
        stack_pointer: frame.stack_pointer.map(Hex::from),
        language: frame.language.map(backtrail_model::Language::as_str),
        alternatives: frame
            .alternatives
            .iter()
            .map(|chain| chain.iter().map(FunctionJson::from).collect())
            .collect(),
        annotations: &frame.annotations,
        owner: frame.owner.as_deref().map(owner),
    }
}

/// What symbolizing found, else what the report says if it says a line.
fn functions(frame: &Frame) -> Vec<FunctionJson<'_>> {
    let reported =
        frame.reported.as_ref().filter(|reported| reported.file.is_some() && is_only_reported(frame));
    let reported = reported.map(|reported| FunctionJson {
        name: &reported.name,
        linkage_name: None,
        file: reported.file.as_deref(),
        line: reported.line,
        column: reported.column,
        inlined: frame.inlined,
    });
    frame.functions.iter().map(FunctionJson::from).chain(reported).collect()
}

/// A symbol table's answer, else the name that the report states without a line.
fn symbol(frame: &Frame) -> Option<SymbolJson<'_>> {
    let reported =
        frame.reported.as_ref().filter(|reported| reported.file.is_none() && is_only_reported(frame));
    let reported = reported.map(|reported| SymbolJson {
        name: &reported.name,
        linkage_name: None,
        offset: reported.offset.map(Hex),
    });
    frame.symbol.as_ref().map(SymbolJson::from).or(reported)
}

/// Whether the frame has a name, and only the report's own.
fn is_only_reported(frame: &Frame) -> bool {
    frame.functions.is_empty() && frame.symbol.is_none() && frame.names().next().is_some()
}

/// What lies at one address.
#[derive(Debug, Serialize)]
pub(super) struct LookupJson<'a> {
    address: Hex,
    functions: Vec<FunctionJson<'a>>,
    symbol: Option<SymbolJson<'a>>,
    reason: Option<&'static str>,
}

/// The answer as JSON shows it.
pub(super) fn lookup(address: Svma, info: &SymbolInfo) -> LookupJson<'_> {
    LookupJson {
        address: address.into(),
        functions: info.functions.iter().map(FunctionJson::from).collect(),
        symbol: info.symbol.as_ref().map(SymbolJson::from),
        reason: info.reason.map(backtrail_core::Reason::as_str),
    }
}
