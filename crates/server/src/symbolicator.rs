//! Symbolicator's JSON: stacks of absolute addresses with their modules, as Sentry's own tools ask.
//! <https://getsentry.github.io/symbolicator/api/symbolication/>
//!
//! The answer is always complete: nobody has to ask again. Sources that a request names are not asked, since a request that came in
//! must not have this server ask others.

use crate::http::{self, Refused, blocking};
use crate::projects::Project;
use crate::state::{App, State};
use crate::symbol_server::{MAX_FRAMES, MAX_IMAGES, SymbolFileRow};
use crate::symbols::allowed;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use backtrail::{Avma, Frame, FrameAddress, Image, Process, Thread};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// The paths of this protocol.
pub(crate) fn routes() -> Router<App> {
    Router::new().route("/symbols/{project}/symbolicate", post(symbolicate))
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    modules: Vec<Module>,
    #[serde(alias = "threads")]
    stacktraces: Vec<Stack>,
}

#[derive(Deserialize)]
struct Module {
    #[serde(default, deserialize_with = "address")]
    image_addr: Option<u64>,
    #[serde(default, deserialize_with = "address")]
    image_size: Option<u64>,
    debug_id: Option<String>,
    /// The rest is given back as it came.
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Deserialize)]
struct Stack {
    #[serde(default)]
    registers: Map<String, Value>,
    frames: Vec<AskedFrame>,
}

#[derive(Deserialize)]
struct AskedFrame {
    #[serde(default, deserialize_with = "address")]
    instruction_addr: Option<u64>,
    /// `abs`, or `rel:N`: from the start of the module at position N.
    addr_mode: Option<String>,
    /// Whether it is an address that a callee returns to; else that of the first frame is not, and all others are.
    adjust_instruction_addr: Option<bool>,
}

/// A number, or its digits with `0x` before them.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let expected = || serde::de::Error::custom("expected an address: a number, or \"0x…\"");
    match value {
        None => Ok(None),
        Some(Value::Number(number)) => number.as_u64().map(Some).ok_or_else(expected),
        Some(Value::String(text)) => {
            let digits = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
            digits.unwrap_or_else(|| text.parse()).map(Some).map_err(|_| expected())
        }
        Some(_) => Err(expected()),
    }
}

async fn symbolicate(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let project = allowed(&app, project, &headers, query).await?;
    let received = http::body(&app, &headers, body).await?;
    let answer = blocking(&app, move |app| {
        let (bytes, _place) = received.into_parts();
        let expected = |why: String| Refused::bad(format!("expected modules and stacktraces as JSON: {why}"));
        let asked: Asked = serde_json::from_slice(&bytes).map_err(|error| expected(error.to_string()))?;
        let frames: usize = asked.stacktraces.iter().map(|stack| stack.frames.len()).sum();
        if asked.modules.len() > MAX_IMAGES || frames > MAX_FRAMES {
            return Err(expected(format!("at most {MAX_IMAGES} modules and {MAX_FRAMES} frames")));
        }
        work(app, &project, &asked)
    });
    Ok(http::json(&answer.await?))
}

/// As the database has it: digits of the UUID, and the age.
fn debug_id(text: &str) -> Option<String> {
    let digits = text.replace('-', "").to_ascii_uppercase();
    let is_plain = (32..=40).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| if digits.len() == 32 { digits + "0" } else { digits })
}

fn work(app: &State, project: &Project, asked: &Asked) -> Result<Value, Refused> {
    let mut process = Process::default();
    for module in &asked.modules {
        let known = match module.debug_id.as_deref().and_then(debug_id) {
            Some(id) => SymbolFileRow::find(app, project, "debug_id = ?2", &id)?,
            None => None,
        };
        let start = module.image_addr.unwrap_or(0);
        process.images.push(Image {
            id: known.as_ref().and_then(SymbolFileRow::image_id),
            arch: known.as_ref().and_then(SymbolFileRow::arch),
            load_address: Avma::new(start),
            end_address: module.image_size.map(|size| Avma::new(start.saturating_add(size))),
            ..Image::default()
        });
    }
    let places = Places::of(&process.images);
    let places: Vec<Vec<_>> = asked
        .stacktraces
        .iter()
        .map(|stack| stack.frames.iter().map(|frame| places.find(frame)).collect())
        .collect();
    for (stack, places) in asked.stacktraces.iter().zip(&places) {
        let mut thread = Thread::default();
        for ((asked_frame, place), index) in stack.frames.iter().zip(places).zip(0..) {
            let mut frame = Frame::new(index);
            if let Some((position, address)) = *place {
                // An image that is not there has nothing to look at.
                frame.image = Some(position)
                    .filter(|at| process.images.get(*at).is_some_and(|image| image.id.is_some()));
                let is_returned_to = asked_frame.adjust_instruction_addr.unwrap_or(index > 0);
                let address = Avma::new(address);
                frame.address = frame.image.map(|_| match is_returned_to {
                    true => FrameAddress::Return(address),
                    false => FrameAddress::Exact(address),
                });
            }
            thread.frames.push(frame);
        }
        process.threads.push(thread);
    }
    app.symbols.of_project(project.id).symbolize(&mut process, false);
    let mut used = vec![false; asked.modules.len()];
    let stacktraces =
        process.threads.iter().zip(&asked.stacktraces).zip(&places).map(|((thread, stack), places)| {
            let frames = thread.frames.iter().zip(&stack.frames).zip(places);
            let frames = frames.flat_map(|((frame, asked_frame), &place)| {
                if let Some(used) = place.and_then(|(at, _)| used.get_mut(at)) {
                    *used = true;
                }
                told(asked, frame, asked_frame, place)
            });
            json!({ "registers": stack.registers, "frames": frames.collect::<Vec<_>>() })
        });
    let stacktraces: Vec<_> = stacktraces.collect();
    let modules = asked.modules.iter().zip(&process.images).zip(used);
    let modules = modules.map(|((module, image), used)| {
        let mut told = module.other.clone();
        let status = match (used, image.id.is_some()) {
            (false, _) => "unused",
            (true, true) => "found",
            (true, false) => "missing",
        };
        told.insert("debug_status".to_owned(), json!(status));
        told.insert("arch".to_owned(), json!(image.arch.map_or("unknown", |arch| arch.name())));
        told.insert("image_addr".to_owned(), json!(format!("{:#x}", image.load_address.get())));
        if let Some(size) = module.image_size {
            told.insert("image_size".to_owned(), json!(size));
        }
        if let Some(id) = &module.debug_id {
            told.insert("debug_id".to_owned(), json!(id));
        }
        Value::Object(told)
    });
    Ok(json!({ "status": "completed", "stacktraces": stacktraces, "modules": modules.collect::<Vec<_>>() }))
}

/// The modules by where they start.
struct Places<'i> {
    images: &'i [Image],
    /// Positions, sorted by the start.
    sorted: Vec<usize>,
}

impl<'i> Places<'i> {
    fn of(images: &'i [Image]) -> Self {
        let mut sorted: Vec<usize> = (0..images.len()).collect();
        sorted.sort_by_key(|at| images.get(*at).map(|image| image.load_address));
        Self { images, sorted }
    }

    /// The module that an address lies in, by its position, and the address itself. A module without a size ends where the next
    /// begins.
    fn find(&self, frame: &AskedFrame) -> Option<(usize, u64)> {
        let address = frame.instruction_addr?;
        if let Some(position) = frame.addr_mode.as_deref().and_then(|mode| mode.strip_prefix("rel:")) {
            let position: usize = position.parse().ok()?;
            let start = self.images.get(position)?.load_address.get();
            return Some((position, start.checked_add(address)?));
        }
        let is_below =
            |at: &usize| self.images.get(*at).is_some_and(|image| image.load_address.get() <= address);
        let position = *self.sorted.get(self.sorted.partition_point(is_below).checked_sub(1)?)?;
        let end = self.images.get(position)?.end_address;
        end.is_none_or(|end| address < end.get()).then_some((position, address))
    }
}

/// A frame of the answer for each function that is inlined there, innermost first, and for the one that the code belongs to.
fn told(asked: &Asked, frame: &Frame, asked_frame: &AskedFrame, place: Option<(usize, u64)>) -> Vec<Value> {
    let mut common = Map::new();
    common.insert("original_index".to_owned(), json!(frame.index));
    let address = place.map(|(_, address)| address).or(asked_frame.instruction_addr);
    common.insert("instruction_addr".to_owned(), json!(format!("{:#x}", address.unwrap_or(0))));
    common.insert("addr_mode".to_owned(), json!("abs"));
    let package = place.and_then(|(at, _)| asked.modules.get(at)?.other.get("code_file").cloned());
    if let Some(package) = package {
        common.insert("package".to_owned(), package);
    }
    let with = |status: &str, more: Vec<(&str, Option<Value>)>| {
        let mut told = common.clone();
        told.insert("status".to_owned(), json!(status));
        told.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Value::Object(told)
    };
    let offset = frame.function_offset.or(frame.symbol.as_ref().map(|symbol| symbol.offset));
    let start = address.zip(offset).and_then(|(address, offset)| address.checked_sub(offset));
    let start = start.map(|start| json!(format!("{start:#x}")));
    if !frame.functions.is_empty() {
        let functions = frame.functions.iter().map(|function| {
            let file = function.file.as_deref();
            with(
                "symbolicated",
                vec![
                    ("function", Some(json!(function.name))),
                    ("symbol", Some(json!(function.name))),
                    ("sym_addr", start.clone()),
                    ("filename", file.map(|file| json!(file.rsplit(['/', '\\']).next().unwrap_or(file)))),
                    ("abs_path", file.map(|file| json!(file))),
                    ("lineno", function.line.map(|line| json!(line))),
                ],
            )
        });
        return functions.collect();
    }
    if let Some(symbol) = &frame.symbol {
        let name = || Some(json!(symbol.name));
        return vec![with(
            "symbolicated",
            vec![("function", name()), ("symbol", name()), ("sym_addr", start)],
        )];
    }
    let status = match (place, frame.image) {
        (None, _) => "unknown_image",
        (Some(_), None) => "missing",
        (Some(_), Some(_)) => "missing_symbol",
    };
    vec![with(status, Vec::new())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_have_an_age() {
        let digits = "0123456789ABCDEF0123456789ABCDEF";
        assert_eq!(debug_id("01234567-89ab-cdef-0123-456789abcdef"), Some(format!("{digits}0")));
        assert_eq!(debug_id(&format!("{digits}1")), Some(format!("{digits}1")));
        for bad in ["", "abc", "0123456789ABCDEF0123456789ABCDEG", &"0".repeat(41)] {
            assert_eq!(debug_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn addresses_are_numbers_or_digits() {
        let frame = |text: &str| serde_json::from_str::<AskedFrame>(text).map(|frame| frame.instruction_addr);
        assert_eq!(frame("{\"instruction_addr\": \"0x1f\"}").unwrap(), Some(31));
        assert_eq!(frame("{\"instruction_addr\": 31}").unwrap(), Some(31));
        assert_eq!(frame("{}").unwrap(), None);
        assert!(
            frame("{\"instruction_addr\": \"x\"}").is_err() && frame("{\"instruction_addr\": -1}").is_err()
        );
    }
}
