//! `docs [--run]`: links in Markdown files that lead nowhere, and code blocks without a tag. With `--run`, the shell blocks
//! of README.md and `docs/` are run instead.

mod blocks;

use crate::{Result, sh};
use std::path::Path;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => check(),
        [flag] if flag == "--run" => blocks::run(),
        other => Err(format!("no option {}", other.join(" "))),
    }
}

fn check() -> Result<()> {
    let mut faults = Vec::new();
    let mut count = 0;
    for path in sh::files(&sh::root(), "md") {
        let text = sh::read(&path)?;
        faults.extend(blocks::faults(&path, &text));
        for (line, link) in links(&text) {
            count += 1;
            if let Some(fault) = fault(&path, &link)? {
                faults.push(format!("{}:{line}: {fault}", sh::shown_path(&path)));
            }
        }
    }
    println!("{count} links checked");
    sh::faults(&faults)
}

/// The targets of `[text](target)` outside code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let (mut links, mut in_code) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // Odd pieces between backticks are code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(targets.map(|(target, _)| (number, target.trim().to_owned())));
    }
    links
}

/// Why a link in the file at `from` is broken. Addresses of other hosts are not followed.
fn fault(from: &Path, link: &str) -> Result<Option<String>> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(None);
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { from.to_path_buf() } else { from.parent().unwrap_or(from).join(file) };
    if !target.exists() {
        return Ok(Some(format!("no file {file}")));
    }
    if anchor.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return Ok(None);
    }
    let known = sh::read(&target)?.lines().filter_map(heading).any(|heading| slug(heading) == anchor);
    Ok((!known).then(|| format!("no heading #{anchor} in {}", sh::shown_path(&target))))
}

fn heading(line: &str) -> Option<&str> {
    line.starts_with('#').then(|| line.trim_start_matches('#').trim())
}

/// How forges name a heading's anchor: lower case, blanks to dashes, other punctuation gone.
fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_holds_no_links() {
        let text = "[a](b.md) `[c](d.md)` [e](f.md#g)\n```\n[h](i.md)\n```\n";
        assert_eq!(links(text), [(1, "b.md".to_owned()), (1, "f.md#g".to_owned())]);
    }

    #[test]
    fn anchors_are_slugs() {
        assert_eq!(slug("Where do I put `x`…?"), "where-do-i-put-x");
    }
}
