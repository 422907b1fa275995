//! People who log in by a name and a password.
//!
//! What somebody may do is a token's whose secret nobody has: sessions and every check know tokens alone
//! ([`Grant`](projects::Grant)). Another way to know people, such as OpenID Connect, would lead to the same token.

use crate::database::{Connection, OptionalExtension as _, Result, params};
use crate::http::Refused;
use crate::passwords::TooMany;
use crate::projects::{self, Scope};
use crate::secret;
use crate::state::State;
use crate::time::now;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Argon2, PasswordHash};
use axum::http::StatusCode;
use std::sync::OnceLock;

/// Characters of a password. NIST SP 800-63B asks for 8 at least, and for long ones to be taken.
const LENGTH: std::ops::RangeInclusive<usize> = 10..=200;

/// Characters of a name.
const MAX_NAME: usize = 64;

/// People of one server: all of them are listed.
const MAX_PEOPLE: usize = 1000;

/// Somebody as they are listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Person {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) scope: String,
    /// The short name of the project; `None` for all.
    pub(crate) project: Option<String>,
    pub(crate) created: i64,
}

impl From<TooMany> for Refused {
    fn from(error: TooMany) -> Self {
        let TooMany { why, wait } = error;
        let message = format!("{why}: try again in {} seconds", wait.as_secs() + 1);
        Self::new(StatusCode::TOO_MANY_REQUESTS, message)
    }
}

/// The token of whoever has this name and password; `None` where nobody has.
pub(crate) fn identify(app: &State, name: &str, password: &str) -> Result<Option<i64>, Refused> {
    let name = folded(name);
    app.passwords.may_try(&name)?;
    let found = app.database.read(|connection| find(connection, &name))?;
    // Without somebody of that name as much is done, so that the time tells nothing.
    let hash = match &found {
        Some((_, hash)) => hash,
        None => nobody()?,
    };
    let is_right =
        LENGTH.contains(&password.chars().count()) && is_password(password, hash) && found.is_some();
    app.passwords.tried(&name, is_right);
    Ok(found.filter(|_| is_right).map(|(token, _)| token))
}

/// The hash of a password that nobody has.
fn nobody() -> Result<&'static str, Refused> {
    static HASH: OnceLock<String> = OnceLock::new();
    if let Some(hash) = HASH.get() {
        return Ok(hash);
    }
    let hash = hashed(&secret::token()?)?;
    Ok(HASH.get_or_init(|| hash))
}

fn is_password(password: &str, hash: &str) -> bool {
    let hash = PasswordHash::new(hash);
    hash.is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

/// Argon2id with what OWASP recommends: 19 MiB, two passes, one lane; a salt of its own.
fn hashed(password: &str) -> Result<String, Refused> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    let failed = |error| {
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the password cannot be hashed: {error}"))
    };
    Ok(hash.map_err(failed)?.to_string())
}

fn checked(password: &str) -> Result<String, Refused> {
    if !LENGTH.contains(&password.chars().count()) {
        let (least, most) = (LENGTH.start(), LENGTH.end());
        return Err(Refused::bad(format!("expected a password of {least} to {most} characters")));
    }
    hashed(password)
}

/// Names differ by more than capital letters.
fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Who is to be added.
pub(crate) struct NewPerson<'a> {
    pub(crate) name: &'a str,
    pub(crate) password: &'a str,
    pub(crate) scope: &'a str,
    /// The project's number or short name; `None` for all.
    pub(crate) project: Option<&'a str>,
}

/// Adds somebody, for who is known to be an administrator.
pub(crate) fn add(app: &State, new: &NewPerson<'_>) -> Result<i64, Refused> {
    let name = folded(new.name);
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(Refused::bad(format!("expected a name of at most {MAX_NAME} characters")));
    }
    let scope = Scope::parse(new.scope).filter(|scope| scope.is_for_people());
    let scope = scope.ok_or_else(|| Refused::bad("expected a scope of read, member or admin"))?;
    let project = match new.project {
        None => None,
        Some(_) if scope == Scope::Admin => {
            return Err(Refused::bad("an administrator is one of all projects: expected no project"));
        }
        Some(name) => {
            let found = app.database.read(|connection| projects::find(connection, name))?;
            Some(found.ok_or_else(Refused::not_found)?.id)
        }
    };
    let hash = checked(new.password)?;
    // Nobody has it.
    let token = secret::token()?;
    let added = app.database.write(move |connection| {
        let count: i64 = connection.query_row("SELECT count(*) FROM person", params![], |row| row.get(0))?;
        if count >= MAX_PEOPLE as i64 || find(connection, &name)?.is_some() {
            return Ok(None);
        }
        let token = projects::add_token(connection, project, scope, &token, &format!("of {name}"))?;
        connection
            .query_row(
                "INSERT INTO person (name, password, token, created) VALUES (?1, ?2, ?3, ?4) RETURNING id",
                params![name, hash, token, now()],
                |row| row.get(0),
            )
            .map(Some)
    })?;
    added.ok_or_else(|| {
        Refused::new(StatusCode::CONFLICT, "there is somebody of that name, or there are 1000 people")
    })
}

/// Takes somebody away, and logs them out. `false` where there is nobody of that number.
pub(crate) fn remove(connection: &Connection, person: i64) -> Result<bool> {
    let token = connection
        .query_row("SELECT token FROM person WHERE id = ?1", params![person], |row| row.get::<_, i64>(0));
    let Some(token) = token.optional()? else { return Ok(false) };
    connection.execute("DELETE FROM person WHERE id = ?1", params![person])?;
    connection.execute("DELETE FROM session WHERE token = ?1", params![token])?;
    connection
        .execute("UPDATE token SET revoked = coalesce(revoked, ?2) WHERE id = ?1", params![token, now()])?;
    Ok(true)
}

/// Gives whoever has this token another password, if the old one is right.
pub(crate) fn change_password(app: &State, token: i64, old: &str, new: &str) -> Result<(), Refused> {
    let name = app.database.read(|connection| name_of(connection, token))?;
    let name = name.ok_or_else(|| Refused::bad("who logged in with a token has no password"))?;
    if identify(app, &name, old)? != Some(token) {
        return Err(Refused::new(StatusCode::FORBIDDEN, "the old password is not right"));
    }
    let hash = checked(new)?;
    app.database.write(move |connection| {
        connection.execute("UPDATE person SET password = ?2 WHERE token = ?1", params![token, hash])?;
        // Whoever had the old one may be logged in.
        connection.execute("DELETE FROM session WHERE token = ?1", params![token])?;
        Ok(())
    })?;
    Ok(())
}

/// The name of whoever has this token; `None` of tokens alone.
pub(crate) fn name_of(connection: &Connection, token: i64) -> Result<Option<String>> {
    let name =
        connection.query_row("SELECT name FROM person WHERE token = ?1", params![token], |row| row.get(0));
    name.optional()
}

fn find(connection: &Connection, name: &str) -> Result<Option<(i64, String)>> {
    let found =
        connection.query_row("SELECT token, password FROM person WHERE name = ?1", params![name], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
    found.optional()
}

/// Everybody.
pub(crate) fn all(connection: &Connection) -> Result<Vec<Person>> {
    connection.query_map(
        "SELECT person.id, person.name, token.scope, project.slug, person.created FROM person \
         JOIN token ON token.id = person.token LEFT JOIN project ON project.id = token.project ORDER BY person.name",
        params![],
        |row| {
            Ok(Person {
                id: row.get(0)?,
                name: row.get(1)?,
                scope: row.get(2)?,
                project: row.get(3)?,
                created: row.get(4)?,
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_known_by_their_hash() {
        let hash = hashed("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(hash, hashed("correct horse").unwrap(), "each has a salt of its own");
        assert!(is_password("correct horse", &hash) && !is_password("correct horsf", &hash));
        assert!(checked("too short").is_err());
    }
}
