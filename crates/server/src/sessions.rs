//! People who logged in: a cookie that only this server knows, and forms that only its pages send.

use crate::database::{Connection, DatabaseError, OptionalExtension as _, Result, params};
use crate::projects::{self, Grant};
use crate::secret;
use crate::time::{DAY, now};
use axum::http::{HeaderMap, header};

/// The cookie's name.
const COOKIE: &str = "backtrail";

/// How long somebody stays logged in.
const LONGEST: i64 = 30 * DAY;

/// Somebody who logged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Session {
    pub(crate) grant: Grant,
    /// Who it is, where they have a name.
    pub(crate) person: Option<String>,
    /// What forms bring along, to tell that they are of this server's pages.
    pub(crate) form_key: String,
    secret: String,
}

/// Begins a session, and returns the cookie for it.
pub(crate) fn begin(connection: &Connection, token: i64, is_secure: bool) -> Result<String> {
    let secret = secret::token().map_err(DatabaseError::Thread)?;
    connection.execute("DELETE FROM session WHERE expires < ?1", params![now()])?;
    connection.execute(
        "INSERT INTO session (digest, token, expires) VALUES (?1, ?2, ?3)",
        params![secret::digest(secret.as_bytes()), token, now() + LONGEST],
    )?;
    let secure = if is_secure { "; Secure" } else { "" };
    Ok(format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}", LONGEST / 1000))
}

/// Ends a session.
pub(crate) fn end(connection: &Connection, session: &Session) -> Result<()> {
    connection.execute(
        "DELETE FROM session WHERE digest = ?1",
        params![secret::digest(session.secret.as_bytes())],
    )?;
    Ok(())
}

/// The cookie that takes the other one's place.
pub(crate) fn no_cookie() -> String {
    format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// Who asks, if they logged in.
pub(crate) fn of(connection: &Connection, headers: &HeaderMap) -> Result<Option<Session>> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let Some((_, secret)) = pairs.find(|(name, _)| *name == COOKIE) else { return Ok(None) };
    let found = connection.query_row(
        "SELECT session.token, person.name FROM session LEFT JOIN person ON person.token = session.token \
         WHERE session.digest = ?1 AND session.expires > ?2",
        params![secret::digest(secret.as_bytes()), now()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    );
    let Some((token, person)) = found.optional()? else { return Ok(None) };
    let grant = projects::grant_by_id(connection, token)?;
    let form_key = secret::digest(format!("form {secret}").as_bytes());
    Ok(grant.map(|grant| Session { grant, person, form_key, secret: secret.to_owned() }))
}
