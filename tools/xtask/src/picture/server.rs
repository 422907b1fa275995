//! A page of the server's demonstration, with its styles beside it.

use crate::demo::Demo;
use crate::{Result, sh};
use std::path::Path;

pub(super) fn write_page(program: &Path, path: &str, scratch: &Path, page: &Path) -> Result<()> {
    let demo = Demo::start(program)?;
    demo.settled()?;
    let mut text = demo.page(path)?;
    for style in ["report.css", "style.css"] {
        sh::write(&scratch.join(style), demo.page(&format!("/{style}"))?.as_bytes())?;
        text = text.replace(&format!("href=\"/{style}\""), &format!("href=\"{style}\""));
    }
    sh::write(page, text.as_bytes())
}
