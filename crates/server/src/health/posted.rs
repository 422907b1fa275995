//! Sessions as a program tells of them that has no client of Sentry: `POST /api/P/sessions/`.

use super::{MAX_NAME, MAX_SUM, SessionItem, What};
use serde::Deserialize;

/// Posts in one body, and sessions in it.
const MAX_POSTS: usize = 1000;
const MAX_SESSIONS: usize = 10_000;

/// One post, or several of a client that was without a network.
#[derive(Deserialize)]
#[serde(untagged)]
enum Posts {
    Several(Vec<serde_json::Value>),
    One(serde_json::Value),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Post {
    release: String,
    os: Option<String>,
    /// Of this post: sums that are posted again count once.
    id: Option<String>,
    counts: Option<Counts>,
    #[serde(default)]
    sessions: Vec<One>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    #[serde(default)]
    well: u32,
    #[serde(default)]
    errored: u32,
    #[serde(default)]
    abnormal: u32,
    #[serde(default)]
    crashed: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    id: String,
    outcome: Outcome,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Well,
    Errored,
    Abnormal,
    Crashed,
}

/// What a body tells of sessions; else what was expected.
pub(crate) fn posted(bytes: &[u8]) -> Result<Vec<SessionItem>, String> {
    let posts = match serde_json::from_slice(bytes).map_err(|error| error.to_string())? {
        Posts::Several(posts) => posts,
        Posts::One(post) => vec![post],
    };
    if posts.is_empty() || posts.len() > MAX_POSTS {
        return Err(format!("1 to {MAX_POSTS} posts"));
    }
    let mut told = Vec::new();
    for post in posts {
        let post: Post = serde_json::from_value(post).map_err(|error| error.to_string())?;
        told.extend(of_post(post)?);
        if told.len() > MAX_SESSIONS {
            return Err(format!("at most {MAX_SESSIONS} sessions"));
        }
    }
    Ok(told)
}

fn of_post(post: Post) -> Result<Vec<SessionItem>, String> {
    let Post { release, os, id, counts, sessions } = post;
    for (text, what) in [(Some(&release), "release"), (os.as_ref(), "os"), (id.as_ref(), "id")] {
        text.map_or(Ok(()), |text| is_name(text, what))?;
    }
    let mut all = Vec::new();
    if let Some(Counts { well, errored, abnormal, crashed }) = counts {
        let post = id.ok_or("an id of the post beside counts: it is what makes them count once")?;
        let sums = [well, errored, abnormal, crashed];
        if sums.iter().any(|sum| *sum > MAX_SUM) {
            return Err(format!("counts of at most {MAX_SUM}"));
        }
        all.push(What::Sums { post: Some(post), sums });
    }
    for One { id, outcome } in sessions {
        is_name(&id, "a session's id")?;
        all.push(What::One { sid: id, state: outcome as u8 });
    }
    if all.is_empty() {
        return Err("counts or sessions".to_owned());
    }
    Ok(all.into_iter().map(|what| SessionItem { release: release.clone(), os: os.clone(), what }).collect())
}

fn is_name(text: &str, what: &str) -> Result<(), String> {
    let length = text.chars().count();
    let is_name = (1..=MAX_NAME).contains(&length) && !text.chars().any(char::is_control);
    if is_name { Ok(()) } else { Err(format!("{what} of 1 to {MAX_NAME} characters")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_single_sessions_are_read() {
        let body = br#"{"release":"app@1","os":"Linux 6.1","id":"p","counts":{"well":5,"crashed":1},
            "sessions":[{"id":"s","outcome":"abnormal"}]}"#;
        let told = posted(body).unwrap();
        let sums = What::Sums { post: Some("p".to_owned()), sums: [5, 0, 0, 1] };
        let one = What::One { sid: "s".to_owned(), state: 2 };
        assert_eq!(told.iter().map(|told| told.what.clone()).collect::<Vec<_>>(), [sums, one]);
        assert!(told.iter().all(|told| told.release == "app@1" && told.os.as_deref() == Some("Linux 6.1")));
        let two = br#"[{"release":"a","sessions":[{"id":"s","outcome":"well"}]},
            {"release":"b","sessions":[{"id":"t","outcome":"errored"}]}]"#;
        assert_eq!(posted(two).unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let long =
            format!(r#"{{"release":"{}","sessions":[{{"id":"s","outcome":"well"}}]}}"#, "x".repeat(201));
        for (body, says) in [
            ("", "EOF"),
            ("[]", "1 to 1000 posts"),
            ("{}", "missing field `release`"),
            (r#"{"release":"a"}"#, "counts or sessions"),
            (r#"{"release":"a","counts":{"well":1}}"#, "an id of the post"),
            (r#"{"release":"a","id":"p","counts":{"wel":1}}"#, "unknown field `wel`"),
            (r#"{"release":"a","id":"p","counts":{"well":-1}}"#, "invalid value"),
            (r#"{"release":"a","id":"p","counts":{"well":10000001}}"#, "counts of at most"),
            (r#"{"release":"a","sessions":[{"id":"s","outcome":"fine"}]}"#, "unknown variant `fine`"),
            (r#"{"release":"a","sessions":[{"id":"","outcome":"well"}]}"#, "a session's id"),
            (r#"{"release":"","sessions":[]}"#, "release of 1 to"),
            (&long, "release of 1 to"),
        ] {
            let error = posted(body.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{body}: {error}");
        }
    }
}
