//! One server, and whether it works.

use std::fmt;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

use super::DebuginfodError;
use crate::http::{Answer, Client};

/// A server that is asked.
pub(super) struct Server {
    /// Without the slash at its end.
    url: String,
    /// Whether it has Apple's files, by their UUIDs.
    pub(super) has_uuids: bool,
    standing: Mutex<Standing>,
}

enum Standing {
    Untried,
    Works,
    Failed(String),
}

/// What came of asking a server.
pub(super) enum Reply {
    File(Option<u64>, Box<dyn Read>),
    NotThere,
    Refused(String),
    Failed(String),
    /// It failed earlier, and was not asked.
    FailedBefore(String),
}

/// Servers with symbols of one's own.
pub(super) fn own(urls: &[String]) -> (Vec<Server>, Vec<DebuginfodError>) {
    let (mut servers, bad) = all(urls);
    servers.iter_mut().for_each(|server| server.has_uuids = true);
    (servers, bad)
}

/// The servers of a list as `DEBUGINFOD_URLS` has it, and what of the list is none.
pub(super) fn all(urls: &[String]) -> (Vec<Server>, Vec<DebuginfodError>) {
    let (mut servers, mut bad): (Vec<Server>, _) = (Vec::new(), Vec::new());
    let mut wants_signatures = false;
    for text in urls {
        let bad_server = |why| DebuginfodError::BadServer(text.clone(), why);
        if let Some(policy) = text.strip_prefix("ima:") {
            // Holds for the servers that follow.
            wants_signatures = policy == "enforcing";
        } else if !["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
            bad.push(bad_server("expected http:// or https://"));
        } else if wants_signatures {
            bad.push(bad_server(
                "its files' signatures are to be checked (ima:enforcing), which is not done here",
            ));
        } else {
            let url = text.trim_end_matches('/').to_owned();
            if servers.iter().all(|server| server.url != url) {
                servers.push(Server { url, has_uuids: false, standing: Mutex::new(Standing::Untried) });
            }
        }
    }
    (servers, bad)
}

impl Server {
    /// Asks for a path. Until it is known whether the server works, others wait for the first who asks: one that is down
    /// is asked once, not by all at the same time.
    pub(super) fn ask(&self, client: &Client, path: &str) -> Reply {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        match &*standing {
            Standing::Failed(why) => return Reply::FailedBefore(why.clone()),
            Standing::Works => drop(standing),
            Standing::Untried => {
                let answer = client.get(&format!("{}/{path}", self.url));
                *standing = match &answer {
                    Answer::Failed(why) => Standing::Failed(why.clone()),
                    _ => Standing::Works,
                };
                return reply(answer);
            }
        }
        let answer = client.get(&format!("{}/{path}", self.url));
        if let Answer::Failed(why) = &answer {
            self.fail(why);
        }
        reply(answer)
    }

    /// From now on it is not asked.
    pub(super) fn fail(&self, why: &str) {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = Standing::Failed(why.to_owned());
    }
}

fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::File(length, body) => Reply::File(length, body),
        Answer::NotThere => Reply::NotThere,
        Answer::Refused(why) => Reply::Refused(why),
        Answer::Failed(why) => Reply::Failed(why),
    }
}

/// An address may have a name and a password in it, which are nobody's to see.
pub(super) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.url))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_those_that_can_be_asked() {
        let urls = [
            "http://a/",
            "http://a",
            "ftp://b",
            "ima:enforcing",
            "https://c",
            "ima:ignore",
            "https://u:p@d/x",
        ];
        let (servers, bad) = all(&urls.map(str::to_owned));
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["http://a", "https://d/x"]);
        let bad: Vec<_> = bad.iter().map(ToString::to_string).collect();
        assert!(bad[0].starts_with("debuginfod server ftp://b: expected http"), "{bad:?}");
        assert!(bad[1].starts_with("debuginfod server https://c: its files' signatures"), "{bad:?}");
        assert_eq!(bad.len(), 2);
    }
}
