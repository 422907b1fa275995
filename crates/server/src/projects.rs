//! Projects, the keys of their clients, and the tokens of people.

use crate::database::{Connection, Database, DatabaseError, OptionalExtension as _, Result, Row, params};
use crate::secret;
use crate::time::now;

/// A project.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Project {
    pub(crate) id: i64,
    pub(crate) slug: String,
    pub(crate) name: String,
    /// The key that apps may have: it adds reports and reads nothing.
    pub(crate) key: Option<String>,
    pub(crate) quota: Quota,
    /// Patterns of what is masked in its reports: an array in JSON.
    pub(crate) scrubbed: String,
}

/// What a project may be sent in a day of UTC; `None` for as much as comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Quota {
    pub(crate) reports: Option<i64>,
    pub(crate) bytes: Option<i64>,
}

/// What a project was sent on a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Used {
    pub(crate) reports: i64,
    pub(crate) bytes: i64,
    /// Requests that were too many.
    pub(crate) refused: i64,
}

impl Quota {
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Whether nothing more is taken on a day that had so much.
    fn is_reached(self, used: Used) -> bool {
        self.reports.is_some_and(|most| used.reports >= most)
            || self.bytes.is_some_and(|most| used.bytes >= most)
    }
}

/// What a project was sent on a day; only projects with a quota are counted.
pub(crate) fn used(connection: &Connection, project: i64, day: i64) -> Result<Used> {
    let used = connection.query_row(
        "SELECT reports, bytes, refused FROM intake_day WHERE project = ?1 AND day = ?2",
        params![project, day],
        |row| Ok(Used { reports: row.get(0)?, bytes: row.get(1)?, refused: row.get(2)? }),
    );
    Ok(used.optional()?.unwrap_or_default())
}

/// Whether a request may come in; one that may not is counted.
pub(crate) fn admit(connection: &Connection, project: i64, quota: Quota, day: i64) -> Result<bool> {
    if !quota.is_reached(used(connection, project, day)?) {
        return Ok(true);
    }
    count(connection, project, day, Used { refused: 1, ..Used::default() })?;
    Ok(false)
}

/// Adds to what a project was sent on a day.
pub(crate) fn count(connection: &Connection, project: i64, day: i64, more: Used) -> Result<()> {
    connection.execute(
        "INSERT INTO intake_day (project, day, reports, bytes, refused) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (project, day) DO UPDATE SET reports = intake_day.reports + excluded.reports, \
             bytes = intake_day.bytes + excluded.bytes, refused = intake_day.refused + excluded.refused",
        params![project, day, more.reports, more.bytes, more.refused],
    )?;
    Ok(())
}

/// Sets what a project may be sent.
pub(crate) fn set_quota(connection: &Connection, project: i64, quota: Quota) -> Result<()> {
    connection.execute(
        "UPDATE project SET reports_a_day = ?2, bytes_a_day = ?3 WHERE id = ?1",
        params![project, quota.reports, quota.bytes],
    )?;
    Ok(())
}

/// Sets what is masked in a project's reports.
pub(crate) fn set_scrubbed(connection: &Connection, project: i64, patterns: &str) -> Result<()> {
    connection.execute("UPDATE project SET scrubbed = ?2 WHERE id = ?1", params![project, patterns])?;
    Ok(())
}

/// What a key or token is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Adds reports. Apps have it, so that anybody may have it.
    Report,
    /// Adds symbols and reads those of its project.
    Symbols,
    /// Reads everything of its project.
    Read,
    /// Reads everything of its project, decides about its issues, and adds symbols.
    Member,
    /// Everything, of all projects.
    Admin,
}

impl Scope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Symbols => "symbols",
            Self::Read => "read",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Report, Self::Symbols, Self::Read, Self::Member, Self::Admin]
            .into_iter()
            .find(|scope| scope.as_str() == text)
    }

    /// Whether who has it sees pages.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Read | Self::Member | Self::Admin)
    }

    /// Whether it is good for what the other one is good for.
    pub(crate) fn includes(self, other: Self) -> bool {
        self == other
            || self == Self::Admin
            || (self == Self::Member && matches!(other, Self::Read | Self::Symbols))
    }
}

/// Who asks, as far as a key or token tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    pub(crate) token: i64,
    pub(crate) scope: Scope,
    /// `None` for all projects.
    pub(crate) project: Option<i64>,
}

impl Grant {
    /// Whether it is good for that, of that project.
    pub(crate) fn allows(&self, scope: Scope, project: i64) -> bool {
        let is_of_project = self.project.is_none_or(|own| own == project);
        is_of_project && self.scope.includes(scope)
    }
}

/// What the first start made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct First {
    pub(crate) project: i64,
    pub(crate) key: String,
    pub(crate) token: String,
}

/// Makes the first project, its key and a token for people, where there is no project yet.
pub(crate) fn first(database: &Database) -> Result<Option<First>> {
    let (key, token) =
        (secret::key().map_err(DatabaseError::Thread)?, secret::token().map_err(DatabaseError::Thread)?);
    database.write(move |connection| {
        if !all(connection)?.is_empty() {
            return Ok(None);
        }
        let project = create(connection, "default", "Default", &key)?;
        add_token(connection, None, Scope::Admin, &token, "made by the first start")?;
        Ok(Some(First { project, key, token }))
    })
}

/// Makes a project with a key for its clients.
pub(crate) fn create(connection: &Connection, slug: &str, name: &str, key: &str) -> Result<i64> {
    let project = connection.query_row(
        "INSERT INTO project (slug, name, created) VALUES (?1, ?2, ?3) RETURNING id",
        params![slug, name, now()],
        |row| row.get(0),
    )?;
    add_key(connection, project, key, "clients")?;
    Ok(project)
}

/// Keeps a further key of a project's clients. It is in every copy of an app, and no secret.
pub(crate) fn add_key(connection: &Connection, project: i64, key: &str, note: &str) -> Result<i64> {
    connection.query_row(
        "INSERT INTO token (project, scope, digest, public, note, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         RETURNING id",
        params![project, Scope::Report.as_str(), secret::digest(key.as_bytes()), key, note, now()],
        |row| row.get(0),
    )
}

/// Keeps the digest of a new token.
pub(crate) fn add_token(
    connection: &Connection,
    project: Option<i64>,
    scope: Scope,
    token: &str,
    note: &str,
) -> Result<i64> {
    connection.query_row(
        "INSERT INTO token (project, scope, digest, note, created) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
        params![project, scope.as_str(), secret::digest(token.as_bytes()), note, now()],
        |row| row.get(0),
    )
}

/// A key or token as it is listed: what it is is shown once, when it is made, but for the keys of apps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) id: i64,
    pub(crate) scope: String,
    pub(crate) key: Option<String>,
    pub(crate) note: String,
    pub(crate) created: i64,
    pub(crate) revoked: Option<i64>,
}

/// A project's keys and tokens, but for those that stand for people.
pub(crate) fn tokens(connection: &Connection, project: i64) -> Result<Vec<Token>> {
    connection.query_map(
        "SELECT id, scope, public, note, created, revoked FROM token WHERE project = ?1 \
         AND id NOT IN (SELECT token FROM person) ORDER BY id",
        params![project],
        |row| {
            Ok(Token {
                id: row.get(0)?,
                scope: row.get(1)?,
                key: row.get(2)?,
                note: row.get(3)?,
                created: row.get(4)?,
                revoked: row.get(5)?,
            })
        },
    )
}

/// A key or token of a project is good for nothing any more. `false` where there is no such one.
pub(crate) fn revoke(connection: &Connection, project: i64, token: i64) -> Result<bool> {
    let sql = "UPDATE token SET revoked = coalesce(revoked, ?3) WHERE project = ?1 AND id = ?2";
    Ok(connection.execute(sql, params![project, token, now()])? == 1)
}

/// Puts a token for everything in the place of all earlier ones. People keep what they may.
pub(crate) fn renew(connection: &Connection, token: &str) -> Result<()> {
    let sql = "UPDATE token SET revoked = ?2 WHERE scope = ?1 AND revoked IS NULL \
        AND id NOT IN (SELECT token FROM person)";
    connection.execute(sql, params![Scope::Admin.as_str(), now()])?;
    add_token(connection, None, Scope::Admin, token, "made in the place of earlier ones")?;
    Ok(())
}

/// All projects.
pub(crate) fn all(connection: &Connection) -> Result<Vec<Project>> {
    connection.query_map(&format!("{PROJECT} ORDER BY name"), params![], project)
}

const PROJECT: &str = "SELECT id, slug, name, (SELECT public FROM token WHERE token.project = project.id \
    AND scope = 'report' AND revoked IS NULL ORDER BY token.id LIMIT 1), reports_a_day, bytes_a_day, scrubbed FROM project";

fn project(row: &Row<'_>) -> Result<Project> {
    let quota = Quota { reports: row.get(4)?, bytes: row.get(5)? };
    Ok(Project {
        id: row.get(0)?,
        slug: row.get(1)?,
        name: row.get(2)?,
        key: row.get(3)?,
        quota,
        scrubbed: row.get(6)?,
    })
}

/// The project that a path means: by its number or by its short name.
pub(crate) fn find(connection: &Connection, name: &str) -> Result<Option<Project>> {
    // A number is written in one way only.
    let number = name.parse().ok().filter(|number: &i64| number.to_string() == name);

    connection
        .query_row(
            &format!("{PROJECT} WHERE slug = ?1 OR id = ?2 ORDER BY name LIMIT 1"),
            params![name, number],
            project,
        )
        .optional()
}

/// Whose a key or token is, and what it is good for.
pub(crate) fn grant(connection: &Connection, token: &str) -> Result<Option<Grant>> {
    grant_of(connection.query_row(
        "SELECT id, scope, project FROM token WHERE digest = ?1 AND revoked IS NULL",
        params![secret::digest(token.as_bytes())],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    ))
}

/// The same of a token by its number.
pub(crate) fn grant_by_id(connection: &Connection, token: i64) -> Result<Option<Grant>> {
    grant_of(connection.query_row(
        "SELECT id, scope, project FROM token WHERE id = ?1 AND revoked IS NULL",
        params![token],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    ))
}

fn grant_of(row: Result<(i64, String, Option<i64>)>) -> Result<Option<Grant>> {
    let found = row.optional()?;
    Ok(found.and_then(|(token, scope, project)| Some(Grant { token, scope: Scope::parse(&scope)?, project })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::tests::sources;
    use backtrail_testkit::TempDir;

    #[test]
    fn keys_are_good_for_their_project_alone() {
        let directory = TempDir::new("server-projects");
        for source in sources(&directory) {
            let database = Database::open(source).unwrap();
            let one = first(&database).unwrap().unwrap();
            assert_eq!(first(&database).unwrap(), None, "only once");
            let two = database.write(|connection| create(connection, "two", "Two", "key-of-two")).unwrap();
            let grant_of = |token: &str| database.read(|connection| grant(connection, token)).unwrap();
            let key = grant_of(&one.key).unwrap();
            assert!(key.allows(Scope::Report, one.project) && !key.allows(Scope::Report, two));
            assert!(!key.allows(Scope::Read, one.project));
            let admin = grant_of(&one.token).unwrap();
            assert!(admin.allows(Scope::Read, two) && admin.allows(Scope::Symbols, one.project));
            assert_eq!(grant_of("nobody's"), None);
            let stored = std::fs::read(directory.join("db-wal")).unwrap_or_default();
            if !database.is_shared() {
                assert!(stored.windows(7).any(|bytes| bytes == b"default"));
            }
            let holds = |token: &str| stored.windows(token.len()).any(|bytes| bytes == token.as_bytes());
            assert!(!holds(&one.token), "tokens are never stored");
        }
    }
}
