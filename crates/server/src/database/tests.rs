use super::*;
use backtrail_testkit::TempDir;

/// A database of each sort, new.
pub(crate) fn sources(directory: &TempDir) -> Vec<Source> {
    let postgres = backtrail_testkit::postgres().map(Source::Postgres);
    std::iter::once(Source::File(directory.join("db"))).chain(postgres).collect()
}

fn projects(database: &Database) -> i64 {
    let count = |connection: &Connection| {
        connection.query_row("SELECT count(*) FROM project", params![], |row| row.get(0))
    };
    database.read(count).unwrap()
}

fn insert(slug: &str) -> impl FnOnce(&Connection) -> Result<usize> + Send + use<> {
    let slug = slug.to_owned();
    move |connection| {
        connection.execute("INSERT INTO project (slug, name, created) VALUES (?1, ?1, 0)", params![slug])
    }
}

#[test]
fn what_fails_takes_nothing_else_along() {
    let directory = TempDir::new("server-database");
    for source in sources(&directory) {
        let database = Database::open(source).unwrap();
        std::thread::scope(|scope| {
            for number in 0..40 {
                let database = &database;
                scope.spawn(move || {
                    let result = database.write(move |connection| {
                        let done = insert(&format!("p{number}"))(connection);
                        if number % 4 == 0 { Err(DatabaseError::Closed) } else { done }
                    });
                    assert_eq!(result.is_ok(), number % 4 != 0);
                });
            }
        });
        assert_eq!(projects(&database), 30);
        assert!(database.write(insert("p1")).is_err(), "unique");
        assert_eq!(projects(&database), 30);
        database.close();
        assert!(matches!(database.write(insert("late")), Err(DatabaseError::Closed)));
    }
}

#[test]
fn a_database_of_a_later_program_is_left_alone() {
    let directory = TempDir::new("server-newer");
    for source in sources(&directory) {
        Database::open(source.clone()).unwrap().close();
        match &source {
            Source::File(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.pragma_update(None, "user_version", 99).unwrap();
            }
            Source::Postgres(url) => {
                backtrail_testkit::psql(url, "UPDATE schema_version SET version = 99").unwrap();
            }
        }
        assert!(matches!(Database::open(source.clone()), Err(DatabaseError::Newer { found: 99 })));
        let read = Database::open_to_read(source).unwrap();
        assert!(matches!(read.check(), Err(DatabaseError::Newer { found: 99 })));
    }
}

/// What writes sees nothing change, whichever replica else writes: else counts would not be those of rows.
#[test]
fn replicas_write_one_after_the_other() {
    let Some(url) = backtrail_testkit::postgres() else { return };
    let replicas = [(); 3].map(|()| Database::open(Source::Postgres(url.clone())).unwrap());
    let number = |connection: &Connection| {
        let all: i64 = connection.query_row("SELECT count(*) FROM project", params![], |row| row.get(0))?;
        insert(&format!("p{all}"))(connection)
    };
    std::thread::scope(|scope| {
        for replica in replicas.iter().cycle().take(24) {
            scope.spawn(move || replica.write(number).unwrap());
        }
    });
    assert!(replicas.iter().all(|replica| projects(replica) == 24));
    let numbers: Vec<i64> = replicas
        .iter()
        .map(|replica| replica.write(|connection| Ok(connection.replica())).unwrap())
        .collect();
    assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2], "{numbers:?}");
    // Those that ended are seen to be gone, others not.
    replicas[0].close();
    let gone = |number: i64| {
        let is_gone = |connection: &Connection| {
            let sql = format!("SELECT {} FROM (SELECT ?1 AS n) AS one", connection.is_gone("n"));
            connection.query_row(&sql, params![number], |row| row.get::<_, bool>(0))
        };
        replicas[1].read(is_gone).unwrap()
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !gone(numbers[0]) {
        assert!(std::time::Instant::now() < until, "it is not there any more");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!gone(numbers[1]) && !gone(numbers[2]));
}

/// A connection that breaks is made anew, and a replica keeps its number.
#[test]
fn a_broken_connection_is_replaced() {
    let Some(url) = backtrail_testkit::postgres() else { return };
    let database = Database::open(Source::Postgres(url.clone())).unwrap();
    assert_eq!(projects(&database), 0);
    let number = || database.write(|connection| Ok(connection.replica()));
    let before = number().unwrap();
    let end = "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name = 'backtrail' \
               AND datname = current_database()";
    backtrail_testkit::psql(&url, end).unwrap();
    database.write(insert("after")).unwrap();
    assert_eq!((projects(&database), number().unwrap()), (1, before));
}

/// Both sorts have the same tables and columns, so that texts of SQL mean the same.
#[test]
fn both_schemas_have_the_same_columns() {
    let directory = TempDir::new("server-schemas");
    let columns = |source: &Source| {
        let sql = match source {
            Source::File(_) => {
                "SELECT tables.name, columns.name FROM sqlite_schema AS tables \
                 JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' \
                 AND tables.name NOT LIKE 'issue_text%'"
            }
            Source::Postgres(_) => {
                "SELECT table_name::text, column_name::text FROM information_schema.columns \
                 WHERE table_schema = 'public' AND table_name <> 'schema_version' AND column_name <> 'words'"
            }
        };
        let database = Database::open(source.clone()).unwrap();
        let mut columns = database
            .read(|connection| connection.query_map(sql, params![], |row| Ok((row.get(0)?, row.get(1)?))))
            .unwrap();
        columns.sort();
        columns
    };
    let all: Vec<Vec<(String, String)>> = sources(&directory).iter().map(columns).collect();
    assert!(all[0].len() > 100 && all.iter().all(|columns| *columns == all[0]), "{all:#?}");
}

/// The steps never change, so that the first of them make what earlier programs made.
#[test]
fn a_database_of_an_earlier_program_keeps_what_it_has() {
    let directory = TempDir::new("server-older");
    for earlier in 1..LATEST {
        let path = directory.join(format!("db-{earlier}"));
        let connection = rusqlite::Connection::open(&path).unwrap();
        for step in &sqlite::MIGRATIONS[..earlier] {
            connection.execute_batch(step).unwrap();
        }
        connection.pragma_update(None, "user_version", i64::try_from(earlier).unwrap()).unwrap();
        connection
            .execute_batch(
                "INSERT INTO project (slug, name, created) VALUES ('old', 'Old', 0); \
                 INSERT INTO blob (digest, size, refs) VALUES ('d', 1, 1); \
                 INSERT INTO report (project, event_id, kind, blob, received, state) \
                 VALUES (1, 'e', 'report', 'd', 5, 'done'); \
                 INSERT INTO symbol_file (project, image_id, kind, name, blob, uploaded) VALUES \
                 (1, '180a373d6afbabf0eb1f09be1bc45bd796a71085', 'library', 'l', 'd', 0), (1, '0102', 'l', 'l', 'd', 0), \
                 (1, '8b10ba6c-1111-2222-3333-44444444444A', 'library', 'm', 'd', 0); \
                 INSERT INTO missing (project, image_id, report, name) VALUES (1, 'id', 1, 'Demo');",
            )
            .unwrap();
        drop(connection);
        let database = Database::open(Source::File(path)).unwrap();
        assert_eq!(projects(&database), 1);
        let kept = |connection: &Connection| {
            let sql = "SELECT count(*) FROM report WHERE received = 5 AND dropped IS NULL";
            connection.query_row(sql, params![], |row| row.get::<_, i64>(0))
        };
        assert_eq!(database.read(kept).unwrap(), 1);
        let missing = |connection: &Connection| {
            let sql = "SELECT reports = 1 AND last = 5 AND name = 'Demo' FROM missing_image";
            connection.query_row(sql, params![], |row| row.get::<_, bool>(0))
        };
        assert!(database.read(missing).unwrap());
        // As `backtrail::debug_id` has them; later programs wrote them themselves.
        let ids = |connection: &Connection| {
            let sql = "SELECT coalesce(debug_id, '') FROM symbol_file ORDER BY id";
            connection.query_map(sql, params![], |row| row.get::<_, String>(0))
        };
        assert!(
            earlier >= 4
                || database.read(ids).unwrap()
                    == [
                        "3D370A18FB6AF0ABEB1F09BE1BC45BD70",
                        "000002010000000000000000000000000",
                        "8B10BA6C11112222333344444444444A0"
                    ]
        );
        assert_eq!(database.check().unwrap(), (LATEST, "ok".to_owned()));
        database.close();
    }
}

#[test]
fn an_empty_database_is_sound() {
    let directory = TempDir::new("server-check");
    for source in sources(&directory) {
        Database::open(source.clone()).unwrap().close();
        let read = Database::open_to_read(source).unwrap();
        assert_eq!(read.check().unwrap(), (LATEST, "ok".to_owned()));
    }
    assert!(Database::open_to_read(Source::File(directory.join("none"))).is_err());
}
