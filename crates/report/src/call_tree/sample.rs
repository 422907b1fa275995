//! What `sample PID` prints.

use super::builder::Builder;
use super::{Common, row};
use crate::Limits;
use crate::apple_text::{ImageRow, KeyValue, Lines};
use backtrail_model::Report;

/// The block that a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Header,
    Graph,
    Images,
    /// Rows of a thread without numbers of samples.
    Bare,
    /// A list behind the graph, with its heading.
    Text,
}

pub(super) fn read(lines: Lines<'_>, limits: &Limits) -> Report {
    let mut common = Common::new(limits);
    let mut block = Block::Header;
    let mut title = "sample".to_owned();
    let mut tree: Option<Builder> = None;
    for line in lines {
        let text = line.text();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            continue;
        }
        if common.is_too_long(&line) {
            common.text(&title, &text);
            continue;
        }
        match trimmed {
            "Call graph:" => {
                block = Block::Graph;
                continue;
            }
            "Binary Images:" => {
                block = Block::Images;
                continue;
            }
            _ => {}
        }
        if super::is_threads_row(trimmed) && matches!(block, Block::Header | Block::Bare) {
            block = Block::Bare;
            close(&mut common, &mut tree);
            tree = (common.report.process.trees.len() < limits.max_threads).then(|| Builder::new(trimmed));
            continue;
        }
        if !text.starts_with(' ') && trimmed.ends_with(':') && block != Block::Header {
            block = Block::Text;
            title = trimmed.trim_end_matches(':').to_owned();
            continue;
        }
        let is_taken = match block {
            Block::Header => header(&mut common, trimmed),
            Block::Graph => graph(&mut common, &mut tree, &text),
            Block::Bare => bare(&mut common, &mut tree, &text),
            Block::Images => image(&mut common, line.bytes),
            Block::Text => false,
        };
        if !is_taken {
            common.text(&title, &text);
        }
    }
    close(&mut common, &mut tree);
    common.finish()
}

fn header(common: &mut Common<'_>, trimmed: &str) -> bool {
    if let Some(rest) = trimmed.strip_prefix(super::SAMPLE) {
        common.report.event = Some(format!("sampling {rest}"));
        return true;
    }
    KeyValue::read(trimmed).is_some_and(|line| common.header(line))
}

/// A thread's row opens its tree: it stands furthest to the left.
fn graph(common: &mut Common<'_>, tree: &mut Option<Builder>, text: &str) -> bool {
    let Some(row) = row::sample(text) else { return false };
    let Some(left) = common.nodes_left.checked_sub(1) else {
        common.notes.add(|| "more frames than the limit allows; the rest is kept as text".to_owned());
        return false;
    };
    let is_thread = row.indent <= 4 && row.frame.address.is_none();
    if is_thread || tree.is_none() {
        close(common, tree);
        if common.report.process.trees.len() >= common.limits.max_threads {
            return false;
        }
        let title = text.trim().split_once(' ').map_or(text, |(_, title)| title);
        let title = if is_thread { title } else { "all threads" };
        *tree = Some(Builder::new(title));
        if is_thread {
            return true;
        }
    }
    common.nodes_left = left;
    if let Some(tree) = tree {
        tree.push(row.indent, row.weight, row.frame, row.note);
    }
    true
}

/// A row that lost its number: each stands below the one that is further left.
fn bare(common: &mut Common<'_>, tree: &mut Option<Builder>, text: &str) -> bool {
    let indent = text.len() - text.trim_start().len();
    let (Some(tree), Some(left)) = (tree, common.nodes_left.checked_sub(1)) else { return false };
    let row = row::sample(&format!("{}1 {}", " ".repeat(indent.min(1000)), text.trim()));
    let Some(row) = row.filter(|_| indent > 0) else { return false };
    common.nodes_left = left;
    tree.push(row.indent, row.weight, row.frame, row.note);
    true
}

fn close(common: &mut Common<'_>, tree: &mut Option<Builder>) {
    common.report.process.trees.extend(tree.take().map(|tree| tree.tree));
}

fn image(common: &mut Common<'_>, line: &[u8]) -> bool {
    let Some(row) = ImageRow::read(line) else { return false };
    let Some(left) = common.images_left.checked_sub(1) else { return false };
    common.images_left = left;
    let is_whole = row.oddity.is_none();
    common.report.process.images.push(row.image);
    is_whole
}
