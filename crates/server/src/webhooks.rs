//! New issues, those that came back and those that suddenly have many reports are told to whom an administrator named: a request with JSON, signed.
//!
//! What is to be told is a row, written in the transaction that makes the issue. Each is sent until it arrives or was tried often
//! enough, so that one may arrive twice.

use crate::admin;
use crate::database::{Connection, Result, Row, params};
use crate::http::{self, Refused, blocking};
use crate::secret;
use crate::state::{App, State};
use crate::time::{now, rfc3339};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use axum::routing::{delete, get};
use backtrail_store::{JsonClient, Method};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The paths of webhooks.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects/{project}/webhooks", get(webhooks).post(new_webhook))
        .route("/api/v1/projects/{project}/webhooks/{webhook}", delete(remove))
}

/// What is told of an issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// No report was of it before.
    New,
    /// It was resolved, and a release has it that did not have it before.
    Returned,
    /// It has many more reports than on the days before.
    Spike,
}

impl Event {
    fn as_str(self) -> &'static str {
        match self {
            Self::New => "issue.new",
            Self::Returned => "issue.returned",
            Self::Spike => "issue.spike",
        }
    }

    /// What people read of an event, by its name.
    fn word(name: &str) -> &'static str {
        match [Self::New, Self::Returned, Self::Spike].into_iter().find(|event| event.as_str() == name) {
            Some(Self::New) => "New",
            Some(Self::Spike) => "Many more",
            Some(Self::Returned) | None => "Back",
        }
    }
}

/// Webhooks of a project.
const MAX_WEBHOOKS: i64 = 20;

/// What may wait for one webhook. The first import of old reports makes thousands of issues, of which nobody wants to be told.
const MAX_WAITING: i64 = 100;

/// After which time each further attempt follows. Then it is given up.
const AGAIN: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(6 * 3600),
];

/// How long whom we tell may take for each part of the request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often is looked for what is due.
const PATROL: Duration = Duration::from_secs(1);

/// Has an issue told to the project's webhooks, as a part of the transaction that changes it.
pub(crate) fn tell(
    connection: &Connection,
    project: i64,
    issue: i64,
    event: Event,
    release: &str,
) -> Result<()> {
    let webhooks: Vec<(i64, i64)> = connection.query_map(
        "SELECT id, (SELECT count(*) FROM notice WHERE webhook = webhook.id) FROM webhook WHERE project = ?1",
        params![project],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (webhook, waiting) in webhooks {
        if waiting >= MAX_WAITING {
            connection.execute("UPDATE webhook SET dropped = dropped + 1 WHERE id = ?1", params![webhook])?;
            continue;
        }
        connection.execute(
            "INSERT INTO notice (webhook, issue, event, release, happened, due) VALUES (?1, ?2, \
             ?3, ?4, ?5, ?5)",
            params![webhook, issue, event.as_str(), release, now()],
        )?;
    }
    Ok(())
}

/// Something to tell, with what is known of it at this moment.
struct Notice {
    id: i64,
    webhook: i64,
    attempts: usize,
    url: String,
    secret: String,
    due: i64,
    body: Value,
}

/// What is due, the oldest first.
fn due(connection: &Connection, base: &str) -> Result<Vec<Notice>> {
    // An issue may have become a part of another one since.
    let sql = "SELECT notice.id, webhook, attempts, url, secret, event, notice.release, happened, \
        project.slug, issue.id, issue.title, issue.kind, issue.owner, issue.count, due FROM notice \
        JOIN webhook ON webhook.id = notice.webhook JOIN project ON project.id = webhook.project \
        JOIN issue AS told ON told.id = notice.issue JOIN issue ON issue.id = coalesce(told.merged_into, told.id) \
        WHERE due <= ?1 ORDER BY due LIMIT 16";
    connection.query_map(sql, params![now()], |row| {
        let (event, release): (String, String) = (row.get(5)?, row.get(6)?);
        let (slug, id): (String, i64) = (row.get(8)?, row.get(9)?);
        let title: String = row.get(10)?;
        let url = format!("{base}/projects/{slug}/issues/{id}");
        let word = Event::word(&event);
        Ok(Notice {
            id: row.get(0)?,
            webhook: row.get(1)?,
            attempts: usize::try_from(row.get::<_, i64>(2)?).unwrap_or_default(),
            url: row.get(3)?,
            secret: row.get(4)?,
            due: row.get(14)?,
            body: json!({
                "event": event,
                "happened": rfc3339(row.get(7)?),
                "project": slug,
                "release": release,
                "issue": {
                    "id": id, "title": title, "kind": row.get::<_, String>(11)?, "owner": row.get::<_, String>(12)?,
                    "count": row.get::<_, i64>(13)?, "url": url,
                },
                "text": format!("{word} in {}: {}\n{url}", quoted(&release), quoted(&title)),
            }),
        })
    })
}

/// How long nobody else tells what a replica is about to tell, in milliseconds: longer than the request may take.
const CLAIM: i64 = 120_000;

/// Whether no other replica tells this at the same time.
fn claim(connection: &Connection, notice: i64, due: i64) -> Result<bool> {
    let sql = "UPDATE notice SET due = ?3 WHERE id = ?1 AND due = ?2";
    Ok(connection.execute(sql, params![notice, due, now() + CLAIM])? == 1)
}

/// What a stranger wrote, as chats show it as it is: in a code span, without the signs that Slack reads as commands.
fn quoted(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let plain = plain.replace('`', "'").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("`{plain}`")
}

/// Starts the thread that tells. It ends when the bell is closed.
pub(crate) fn start(app: &App, base: String) -> io::Result<JoinHandle<()>> {
    let app = Arc::clone(app);
    std::thread::Builder::new().name("webhooks".to_owned()).spawn(move || {
        while !app.notices.is_closed() {
            match some(&app, &base) {
                Ok(true) => {}
                Ok(false) => app.notices.wait(0, PATROL),
                Err(error) => {
                    crate::error::eprint_problem(&error.to_string());
                    app.notices.wait(0, PATROL);
                }
            }
        }
    })
}

/// Tells what is due; whether there was something.
fn some(app: &State, base: &str) -> Result<bool> {
    let notices = app.database.read(|connection| due(connection, base))?;
    let is_some = !notices.is_empty();
    let mut failed = HashSet::new();
    for notice in notices {
        if app.notices.is_closed() {
            break;
        }
        // What waits for the same address was put off with the one that failed.
        if failed.contains(&notice.webhook) {
            continue;
        }
        let Notice { id, due, .. } = notice;
        if app.database.is_shared() && !app.database.write(move |connection| claim(connection, id, due))? {
            continue;
        }
        let problem = send(&notice).err();
        if problem.is_some() {
            failed.insert(notice.webhook);
        }
        app.database.write(move |connection| finish(connection, &notice, problem.as_deref()))?;
    }
    Ok(is_some)
}

fn send(notice: &Notice) -> std::result::Result<(), String> {
    let body = notice.body.to_string().into_bytes();
    let signature = format!("sha256={}", signature(&notice.secret, &body)?);
    let headers = [("Content-Type", "application/json"), ("X-Backtrail-Signature", signature.as_str())];
    let client = JsonClient::new(&notice.url, None, PATIENCE);
    let (status, _) = client.send_with(Method::Post, "", &headers, &body)?;
    if (200..300).contains(&status) { Ok(()) } else { Err(format!("answered {status}")) }
}

/// The HMAC of a body (RFC 2104, with SHA-256), by which its reader knows that it is ours.
fn signature(secret: &str, body: &[u8]) -> std::result::Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?;
    mac.update(body);
    Ok(secret::hex(&mac.finalize().into_bytes()))
}

fn finish(connection: &Connection, notice: &Notice, problem: Option<&str>) -> Result<()> {
    let Notice { id, webhook, attempts, .. } = notice;
    let Some(problem) = problem else {
        connection.execute("DELETE FROM notice WHERE id = ?1", params![id])?;
        let sql = "UPDATE webhook SET delivered = ?2, problem = NULL WHERE id = ?1";
        connection.execute(sql, params![webhook, now()])?;
        return Ok(());
    };
    let dropped = match AGAIN.get(*attempts) {
        Some(after) => {
            let due = now().saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX));
            let sql = "UPDATE notice SET attempts = attempts + 1, due = ?2 WHERE id = ?1";
            connection.execute(sql, params![id, due])?;
            // An address that does not answer would hold up all others, ten seconds for each that waits for it.
            let sql = "UPDATE notice SET due = ?2 WHERE webhook = ?1 AND due < ?2";
            connection.execute(sql, params![webhook, due])?;
            0
        }
        None => connection.execute("DELETE FROM notice WHERE id = ?1", params![id])?,
    };
    let sql = "UPDATE webhook SET problem = ?2, dropped = dropped + ?3 WHERE id = ?1";
    connection.execute(sql, params![webhook, problem, i64::try_from(dropped).unwrap_or_default()])?;
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewWebhook {
    url: String,
}

/// Whether requests may be sent there.
fn is_address(url: &str) -> bool {
    let uri = url.parse::<Uri>().ok().filter(|_| url.len() <= 2000);
    let scheme = uri.as_ref().and_then(Uri::scheme_str);
    matches!(scheme, Some("http" | "https")) && uri.is_some_and(|uri| uri.host().is_some())
}

async fn new_webhook(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> std::result::Result<Response, Refused> {
    let asked: NewWebhook = admin::read(&app, &headers, body).await?;
    blocking(&app, move |app| {
        let project = admin::project(app, &name, &headers)?.id;
        if !is_address(&asked.url) {
            return Err(Refused::bad("expected an address that begins with https:// or http://"));
        }
        let secret = secret::token()?;
        let shown = secret.clone();
        let id = app.database.write(move |connection| {
            let count: i64 = connection.query_row(
                "SELECT count(*) FROM webhook WHERE project = ?1",
                params![project],
                |row| row.get(0),
            )?;
            if count >= MAX_WEBHOOKS {
                return Ok(None);
            }
            let sql =
                "INSERT INTO webhook (project, url, secret, created) VALUES (?1, ?2, ?3, ?4) RETURNING id";
            let id = |row: &Row<'_>| row.get::<_, i64>(0);
            connection.query_row(sql, params![project, asked.url, secret, now()], id).map(Some)
        })?;
        let id = id.ok_or_else(|| Refused::bad("expected at most 20 webhooks of a project"))?;
        Ok(http::json(&json!({ "id": id, "secret": shown })))
    })
    .await
}

async fn webhooks(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> std::result::Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = admin::project(app, &name, &headers)?.id;
        let rows = app.database.read(|connection| {
            connection.query_map(
                "SELECT id, url, created, delivered, problem, dropped, \
                 (SELECT count(*) FROM notice WHERE webhook = webhook.id) FROM webhook WHERE project = ?1 ORDER BY id",
                params![project],
                |row| {
                    Ok(json!({
                        "id": row.get::<_, i64>(0)?,
                        "url": row.get::<_, String>(1)?,
                        "created": rfc3339(row.get(2)?),
                        "delivered": row.get::<_, Option<i64>>(3)?.map(rfc3339),
                        "problem": row.get::<_, Option<String>>(4)?,
                        "dropped": row.get::<_, i64>(5)?,
                        "waiting": row.get::<_, i64>(6)?,
                    }))
                },
            )
        })?;
        Ok(http::json(&json!({ "webhooks": rows })))
    })
    .await
}

async fn remove(
    Shared(app): Shared<App>,
    Path((name, webhook)): Path<(String, i64)>,
    headers: HeaderMap,
) -> std::result::Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = admin::project(app, &name, &headers)?.id;
        let removed = app.database.write(move |connection| {
            let sql = "DELETE FROM webhook WHERE project = ?1 AND id = ?2";
            connection.execute(sql, params![project, webhook])
        })?;
        if removed == 0 {
            return Err(Refused::not_found());
        }
        Ok(http::json(&json!({ "id": webhook, "removed": true })))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second case of RFC 4231.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", b"what do ya want for nothing?").unwrap(), expected);
    }

    #[test]
    fn only_addresses_of_the_web_are_asked() {
        assert!(is_address("https://example.org/hook?a=b") && is_address("http://127.0.0.1:80/"));
        for bad in ["file:///etc/passwd", "example.org", "ftp://example.org", "https://", "", "gopher://x"] {
            assert!(!is_address(bad), "{bad}");
        }
    }

    #[test]
    fn chats_are_given_no_commands() {
        assert_eq!(quoted("a`b <!channel> & @here\nc"), "`a'b &lt;!channel&gt; &amp; @here c`");
    }
}
