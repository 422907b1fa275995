//! TLS to PostgreSQL, and who is believed to be the database: certificates of fixtures/tls.

use backtrail_server::{Config, Server, check};
use backtrail_testkit::{NetworkPostgres, TempDir, fixtures, postgres_by_network, psql};

/// Who may come by which way; everybody's password is the same.
const HBA: &str = "host all plain 127.0.0.1/32 trust\n\
    hostssl all certified 127.0.0.1/32 cert\n\
    hostssl all all 127.0.0.1/32 scram-sha-256";

const PASSWORD: &str = "p4ss%2Fw0rd%40";

fn server(certificate: Option<&str>) -> Option<NetworkPostgres> {
    let server = postgres_by_network(HBA, certificate)?;
    psql(
        &server.url,
        "CREATE ROLE anna LOGIN PASSWORD 'p4ss/w0rd@'; CREATE ROLE plain LOGIN; CREATE ROLE certified LOGIN; \
         ALTER DATABASE postgres OWNER TO anna; GRANT ALL ON SCHEMA public TO anna, plain, certified",
    )
    .unwrap();
    Some(server)
}

fn file(name: &str) -> String {
    fixtures().join("tls").join(name).to_str().unwrap().to_owned()
}

/// Asks the database at this host's name.
fn asked(server: &NetworkPostgres, user: &str, host: &str, options: &str) -> Result<Vec<String>, String> {
    let port = server.port;
    let directory = TempDir::new("server-tls");
    let mut config = Config::new(directory.join("data"));
    config.database =
        Some(format!("postgresql://{user}@{host}:{port}/postgres?hostaddr=127.0.0.1&{options}"));
    // It has no tables; that it says so is an answer.
    let checked = check(&config).map(|checked| checked.problems).map_err(|error| error.to_string());
    let text = format!("{checked:?} {config:?}");
    assert!(!text.contains("p4ss") && !text.contains("w0rd"), "{text}");
    checked
}

fn let_in(server: &NetworkPostgres, user: &str, host: &str, options: &str) {
    let answer = asked(server, user, host, options).unwrap_err();
    assert!(answer.contains("without tables"), "{options}: {answer}");
}

fn refused(server: &NetworkPostgres, user: &str, host: &str, options: &str, why: &str) {
    let answer = asked(server, user, host, options).unwrap_err();
    assert!(answer.contains(why), "{options}: {answer}");
}

#[test]
fn hosts_show_who_they_are() {
    let Some(server) = server(Some("server")) else { return };
    let anna = &format!("anna:{PASSWORD}");
    let (root, other) = (file("root.pem"), file("other-root.pem"));
    let (here, name) = ("127.0.0.1", "database.test");
    // The certificate, by each word.
    for options in [
        "sslmode=prefer",
        "sslmode=require",
        "sslmode=require&channel_binding=require",
        &format!("sslmode=require&sslrootcert={root}"),
        &format!("sslmode=verify-ca&sslrootcert={root}"),
        &format!("sslmode=verify-full&sslrootcert={root}"),
        &format!("sslrootcert={root}"),
        &format!("sslmode=verify-full&channel_binding=require&sslrootcert={}", root.replace('/', "%2F")),
    ] {
        let_in(&server, anna, name, options);
    }
    let_in(&server, anna, "other.test", &format!("sslmode=verify-ca&sslrootcert={root}"));
    for host in ["other.test", here, "localhost"] {
        let options = format!("sslmode=verify-full&sslrootcert={root}");
        refused(&server, anna, host, &options, "its certificate is for another name");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let options = format!("sslmode={mode}&sslrootcert={other}");
        refused(&server, anna, name, &options, "no authority that this machine trusts");
    }
    // Those of this machine have not signed it.
    for options in ["sslmode=verify-full", "sslmode=verify-full&sslrootcert=system"] {
        refused(&server, anna, name, options, "no authority that this machine trusts");
    }
    // Without TLS it lets only one in.
    refused(&server, anna, name, "sslmode=disable", "no encryption");
    let_in(&server, "plain", name, "sslmode=disable");
    refused(&server, "anna:p4ssw0rd", name, "sslmode=require", "password authentication failed");
    // Clients have certificates, too.
    let (certificate, key) = (file("client.pem"), file("client.key"));
    let certified = format!("sslmode=require&sslcert={certificate}&sslkey={key}");
    let_in(&server, "certified", name, &certified);
    refused(&server, "certified", name, "sslmode=require", "valid client certificate");
    // A server of ours, with its connections for writing and reading.
    let directory = TempDir::new("server-tls");
    let mut config = Config::new(directory.join("data"));
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.database = Some(format!(
        "postgresql://{anna}@{name}:{}/postgres?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={root}",
        server.port
    ));
    let started = Server::start(config.clone()).unwrap();
    let by_tls = "SELECT count(*), count(*) FILTER (WHERE NOT ssl) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) \
                  WHERE application_name = 'backtrail'";
    let counts = psql(&server.url, by_tls).unwrap();
    let (all, without) = counts.split_once('|').unwrap();
    assert!(all.parse::<usize>().unwrap() > 0 && without == "0", "{counts}");
    started.stop();
    assert_eq!(check(&config).unwrap().problems, Vec::<String>::new());
}

#[test]
fn hosts_that_sign_for_themselves_are_named_by_file() {
    let Some(server) = server(Some("self-signed")) else { return };
    let anna = &format!("anna:{PASSWORD}");
    let (own, root) = (file("self-signed.pem"), file("root.pem"));
    for mode in ["verify-ca", "verify-full"] {
        let_in(&server, anna, "database.test", &format!("sslmode={mode}&sslrootcert={own}"));
        let options = format!("sslmode={mode}&sslrootcert={root}");
        refused(&server, anna, "database.test", &options, "signed by itself");
    }
    let options = format!("sslmode=verify-full&sslrootcert={own}");
    refused(&server, anna, "other.test", &options, "its certificate is for another name");
}

#[test]
fn a_host_without_tls_is_taken_only_where_that_is_said() {
    let Some(server) = server(None) else { return };
    let root = file("root.pem");
    let_in(&server, "plain", "database.test", "sslmode=disable");
    let_in(&server, "plain", "database.test", "sslmode=prefer");
    // What stays here needs none.
    let_in(&server, "plain", "localhost", "");
    let full = format!("sslmode=verify-full&sslrootcert={root}");
    for options in ["sslmode=require", "sslmode=verify-full", &full] {
        refused(&server, "plain", "database.test", options, "has no TLS");
    }
    let directory = TempDir::new("server-tls");
    let mut config = Config::new(directory.join("data"));
    // A network's address that nobody listens at, or that is not this machine's, would not tell.
    let sslrootcert = format!("postgresql://plain@127.0.0.1:{}/postgres?sslrootcert={root}", server.port);
    config.database = Some(sslrootcert);
    let why = check(&config).unwrap_err().to_string();
    assert!(why.contains("has no TLS") && why.contains("sslmode=disable"), "{why}");
}

#[test]
fn addresses_that_say_something_else_are_refused_without_their_passwords() {
    for (options, why) in [
        ("@h/d?sslmode=allow", "sslmode=disable, prefer"),
        ("@h/d?sslmode=verify-ca", "sslrootcert=FILE"),
        ("@h/d?sslmode=require&sslrootcert=system", "verify-full with sslrootcert=system"),
        ("@h/d?sslmode=require&sslrootcert=/none.pem", "/none.pem"),
        ("@h/d?sslmode=require&sslcert=/none.pem", "sslcert and sslkey together"),
        ("@h/d?sslmode=require&sslcert=/none.pem&sslkey=/none.key", "/none.key"),
        ("@h/d?sslmode=require&sslrootcert=%zz", "%XX"),
        ("@h/d?sslcrl=/none", "sslcrl"),
        ("@h:port/d", "port"),
        ("w0rd@h?w0rd=1@h/d", "%40"),
    ] {
        let directory = TempDir::new("server-tls");
        let mut config = Config::new(directory.join("data"));
        config.database = Some(format!("postgresql://anna:p4ss{options}"));
        let answer = check(&config).unwrap_err().to_string();
        assert!(answer.contains(why), "{options}: {answer}");
        assert!(!answer.contains("p4ss") && !answer.contains("w0rd"), "{answer}");
    }
    // A key is none of the certificate files, and no line of it is told.
    let directory = TempDir::new("server-tls");
    let mut config = Config::new(directory.join("data"));
    let (root, key) = (file("root.pem"), file("client.key"));
    for (certificate, key) in [(&root, &root), (&key, &key)] {
        config.database =
            Some(format!("postgresql://anna@h/d?sslmode=require&sslcert={certificate}&sslkey={key}"));
        let answer = check(&config).unwrap_err().to_string();
        assert!(answer.contains("expected") && answer.len() < 300, "{answer}");
    }
}
