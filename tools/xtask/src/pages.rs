//! `pages`: each kind of page of the server's demonstration in a real browser, as wide as a phone and as a screen: nothing is wider than
//! the window, no script, style or load fails, everything that can be used is reached by the keyboard and has a name.

mod browser;

use crate::demo::Demo;
use crate::{Result, sh};
use browser::Browser;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Widths of windows, and whether they are those of a phone.
const WIDTHS: [(u32, bool); 2] = [(390, true), (1280, false)];

/// Things on a page that are tried by the keyboard.
const MAX_STOPS: usize = 400;

/// What can be used, and is there to be seen. Of radio buttons the keyboard reaches one of a group.
const USABLE: &str = "Array.from(document.querySelectorAll('a[href], button, summary, select, textarea, \
    input:not([type=hidden]):not([type=radio])')).filter(it => it.checkVisibility() && !it.disabled)";

/// What is wrong with a page as it stands: sentences.
const FAULTS: &str = "(() => { const faults = []; const root = document.documentElement; \
    if (root.scrollWidth > root.clientWidth) { \
        const wide = Array.from(document.querySelectorAll('body *')).find(it => it.getBoundingClientRect().right > root.clientWidth + 0.05 \
            && !it.closest('.scroll')); \
        faults.push(`it is ${root.scrollWidth} pixels wide in a window of ${root.clientWidth}: ${wide ? wide.outerHTML.slice(0, 120) : ''}`); } \
    if (!document.title) faults.push('it has no title'); \
    if (!root.lang) faults.push('its language is not told'); \
    if (document.querySelectorAll('h1').length !== 1) faults.push('it has not one heading of the first level'); \
    for (const it of USABLE) { \
        const name = (it.textContent || '').trim() || it.getAttribute('aria-label') || it.title || (it.labels && it.labels.length); \
        if (!name) faults.push('nothing says what this is: ' + it.outerHTML.slice(0, 120)); } \
    return faults; })()";

pub(crate) fn run(_: &[String]) -> Result<()> {
    let Some(name) = browser::find() else {
        println!("pages: not looked at, there is no chromium (apt-get install chromium)");
        return Ok(());
    };
    let program = sh::built_for_tests(&["-p", "backtrail-cli"])?;
    let demo = Demo::start(&program)?;
    let paths = paths(&demo)?;
    let scratch = Scratch::new()?;
    let mut browser = Browser::start(name, &scratch.0)?;
    let (cookie, value) = demo.cookie.split_once('=').unwrap_or_default();
    let url = format!("http://{}", demo.address);
    browser.ask("Network.setCookie", &json!({ "name": cookie, "value": value, "url": url }))?;
    let mut faults = Vec::new();
    for (width, mobile) in WIDTHS {
        let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": mobile });
        browser.ask("Emulation.setDeviceMetricsOverride", &size)?;
        for path in &paths {
            browser.go(&format!("{url}{path}"))?;
            let mut found = texts(&browser.value(&FAULTS.replace("USABLE", USABLE))?);
            // What the window is as wide as changes nothing of this.
            if !mobile {
                found.extend(unreached(&mut browser)?);
            }
            found.append(&mut browser.errors);
            faults.extend(found.iter().map(|fault| format!("{path}, {width} pixels: {fault}")));
        }
    }
    if faults.is_empty() {
        println!("pages: {} pages of two widths are well", paths.len());
        return Ok(());
    }
    Err(faults.join("\n"))
}

/// A page of each kind.
fn paths(demo: &Demo) -> Result<Vec<String>> {
    let issues = demo.settled()?;
    let issue = link(&issues, "/projects/default/issues/").ok_or("the demonstration has no issue")?;
    let report = link(&demo.page(&issue)?, "/projects/default/reports/").ok_or("the issue has no report")?;
    let owner = link(&demo.page("/projects/default/owners")?, "/projects/default/owners?")
        .ok_or("there is no owner")?;
    let mut paths: Vec<String> = ["/", "/projects/default"].map(str::to_owned).to_vec();
    for page in ["hangs", "owners", "missing", "releases", "apart", "setup", "upload", "tokens"] {
        paths.push(format!("/projects/default/{page}"));
    }
    paths.extend([format!("{issue}/stacks"), issue, report, owner]);
    paths.extend(["/login", "/people", "/account"].map(str::to_owned));
    Ok(paths)
}

/// The first link that begins so.
fn link(page: &str, begin: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("href=\"{begin}"))?;
    let rest = rest.split('"').next()?;
    Some(format!("{begin}{rest}").replace("&amp;", "&"))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// What the tabulator does not come to.
fn unreached(browser: &mut Browser) -> Result<Vec<String>> {
    let count = browser.value(&format!("{USABLE}.length"))?.as_u64().unwrap_or_default();
    let count = usize::try_from(count).unwrap_or(MAX_STOPS).min(MAX_STOPS);
    // What scrolls sideways is a stop, too, and after the last one the browser's own are.
    for _ in 0..count + 30 {
        browser.press_tab()?;
        browser
            .value("(() => { if (document.activeElement) document.activeElement.dataset.seen = 1; })()")?;
    }
    let left = format!(
        "{USABLE}.slice(0, {count}).filter(it => !it.dataset.seen).map(it => \
        'the keyboard does not come to ' + it.outerHTML.slice(0, 120))"
    );
    Ok(texts(&browser.value(&left)?))
}

/// A directory for the browser, new and empty.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("backtrail-pages-{}", std::process::id()));
        sh::make_directory(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
