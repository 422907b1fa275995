//! Use of UIKit or AppKit off the main thread.

use super::draft::Draft;
use super::facts::Facts;
use super::tables::throwers::method;
use crate::names::{cite, own_frames, thread_label};
use backtrail_model::{Frame, Source, Thread};

/// The queue of the main thread.
const MAIN: &str = "com.apple.main-thread";

/// Deeper frames have no say.
const MAX_FRAMES: usize = 24;

/// Beginnings of classes that may be used on the main thread alone. Others may be used on any: images, colors, fonts, paths.
///
/// Source: UIKit's documentation, "Use UIKit classes only from your app's main thread or main dispatch queue, unless otherwise
/// indicated"; AppKit's likewise ("Thread Safety Summary").
const CLASSES: [&str; 21] = [
    "UIAlertController",
    "UIApplication",
    "UIButton",
    "UICollectionView",
    "UIControl",
    "UIImageView",
    "UILabel",
    "UINavigationController",
    "UIResponder",
    "UIScene",
    "UIScrollView",
    "UITabBar",
    "UITableView",
    "UITextField",
    "UITextView",
    "UIView",
    "UIWindow",
    "NSApplication",
    "NSView",
    "NSWindow",
    "NSMenu",
];

/// Adds that the thread that crashed is at work inside of a class of UIKit or AppKit, and is not the main thread.
pub(super) fn add(facts: &Facts<'_>, draft: &mut Draft) {
    // Apple numbers the main thread 0; reporters' own texts count as they list.
    let is_numbered = matches!(facts.report.source, Source::AppleText | Source::AppleIps)
        && facts.report.exception.is_some()
        && facts
            .thread
            .is_some_and(|thread| thread.number > 0 && thread.queue.is_none() && thread.name.is_none());
    let Some(thread) = facts.thread.filter(|thread| is_numbered || is_other(thread)) else { return };
    let frames = own_frames(facts.report, &thread.frames);
    let Some(frame) = frames.iter().take(MAX_FRAMES).find(|frame| is_main_only(frame)) else { return };
    draft.say(match thread.queue.as_deref().or(thread.name.as_deref()) {
        Some(queue) => {
            format!(
                "The code is inside of UIKit or AppKit on the queue {queue}, which is not the main thread's."
            )
        }
        None => format!(
            "The code is inside of UIKit or AppKit on thread {}, which is not the main thread.",
            thread.number
        ),
    });
    draft.cause("A view, a window or the application's object used off the main thread: these may be used on it alone.");
    draft.next("Send that work to the main queue, and run with the Main Thread Checker: it names the call.");
    draft.evidence(cite(facts.report, &thread_label(thread), frame));
}

/// Whether the report says that the thread served a queue, and that was the app's or a library's.
fn is_other(thread: &Thread) -> bool {
    // Crashlytics heads a stack with the queue's name or the thread's; the web view's own thread may use some of UIKit.
    let heading = || {
        let name = thread.name.as_deref()?;
        let is_queues = name.starts_with("NSOperationQueue ")
            || name.contains(" (QOS: ")
            || name.starts_with("com.") && !name.contains(' ');
        Some(name)
            .filter(|name| is_queues && !name.contains("WebThread") && !name.to_lowercase().contains("uikit"))
    };
    let queue = thread.queue.as_deref().or_else(heading);
    queue.is_some_and(|queue| queue != MAIN && !queue.starts_with("com.apple.UIKit"))
}

fn is_main_only(frame: &Frame) -> bool {
    let Some((class, _)) = frame.names().last().and_then(method) else { return false };
    let class = class.split('(').next().unwrap_or(class);
    CLASSES.contains(&class)
}
