//! What a server is told: where its data is, where it listens, what it bears.

use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How a server runs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// The directory with everything that it keeps.
    pub data: PathBuf,
    /// PostgreSQL's address, `postgresql://USER@HOST/NAME?sslmode=verify-full`, in the place of a file in `data`: several servers may share it, each with a
    /// directory of its own. Needs the feature `postgres`.
    pub database: Option<String>,
    /// Where files are, if not in `data`. Servers that share a database share it.
    pub objects: Option<ObjectStore>,
    /// Bytes of a bucket's files that are kept in `data` beside those that projects' symbols are read from.
    pub objects_cache: u64,
    /// Where it takes requests.
    pub listen: SocketAddr,
    /// The address that clients and people use, where that is another one: `https://crashes.example.org`.
    pub url: Option<String>,
    /// Threads that work reports; 0 for one a processor.
    pub workers: usize,
    /// How long reports keep their bytes; `None` for ever. The first and the last three of an issue keep them anyway.
    pub keep: Option<Duration>,
    /// How many bytes of reports are kept, as they came; `None` for all. The oldest go first, with the same exception.
    pub keep_bytes: Option<u64>,
    /// The program that makes tables of symbols, called as `PROGRAM serve make-tables …`: see [`make_tables`](crate::make_tables).
    /// Without one, files of symbols are read as they are, by the server itself.
    pub tables: Option<PathBuf>,
    /// What it bears.
    pub limits: ServerLimits,
}

impl Config {
    /// With everything in `data`, on this machine only, port 4747.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            database: None,
            objects: None,
            objects_cache: 10_000_000_000,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4747),
            url: None,
            workers: 0,
            keep: None,
            keep_bytes: None,
            tables: None,
            limits: ServerLimits::default(),
        }
    }

    /// The directory of files, where they are in one.
    pub(crate) fn objects_directory(&self) -> PathBuf {
        match &self.objects {
            Some(ObjectStore::Directory(directory)) => directory.clone(),
            _ => self.data.join("objects"),
        }
    }
}

/// Without the database's address, which has a password in it.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("data", &self.data)
            .field("database", &self.database.as_ref().map(|_| "postgresql://…"))
            .field("objects", &self.objects)
            .field("listen", &self.listen)
            .field("url", &self.url)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Where files are.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ObjectStore {
    /// In a directory.
    Directory(PathBuf),
    /// In a bucket. Needs the feature `s3`.
    Bucket(BucketOptions),
}

impl ObjectStore {
    /// What `--objects` says: `s3://BUCKET` or `s3://BUCKET/PREFIX`, with what else is needed from the environment as Amazon's programs have
    /// it; else a directory.
    ///
    /// # Errors
    /// What is missing or no such thing, in words that have no key in them.
    pub fn parse(text: &OsStr) -> Result<Self, String> {
        match text.to_str().and_then(|text| text.strip_prefix("s3://")) {
            Some(place) => {
                BucketOptions::of_variables(place, &|name| std::env::var(name).ok()).map(Self::Bucket)
            }
            None => Ok(Self::Directory(text.into())),
        }
    }
}

impl From<PathBuf> for ObjectStore {
    fn from(directory: PathBuf) -> Self {
        Self::Directory(directory)
    }
}

/// A bucket of S3's protocol, and who may use it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketOptions {
    /// Its name.
    pub bucket: String,
    /// What the names of all files begin with; empty for all of the bucket.
    pub prefix: String,
    /// `http://HOST:PORT` or `https://HOST`; `None` for Amazon's.
    pub endpoint: Option<String>,
    /// Whether an endpoint has the bucket's name before its host's, `http://BUCKET.HOST:PORT`, in the place of the path.
    pub in_host: bool,
    /// The region, which signatures have in them.
    pub region: String,
    /// The key's id.
    pub access_key: String,
    /// The key.
    pub secret_key: String,
    /// What comes along with keys that hold for some time.
    pub session_token: Option<String>,
}

impl BucketOptions {
    /// A bucket of Amazon's in the first region.
    pub fn new(bucket: &str, access_key: &str, secret_key: &str) -> Self {
        Self {
            bucket: bucket.to_owned(),
            prefix: String::new(),
            endpoint: None,
            in_host: false,
            region: "us-east-1".to_owned(),
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            session_token: None,
        }
    }

    fn of_variables(place: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let is_name = |text: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            text.bytes().all(is_plain) && !text.is_empty() && !text.starts_with('.')
        };
        let prefix = prefix.trim_matches('/');
        if !is_name(bucket) || !prefix.is_empty() && !prefix.split('/').all(is_name) {
            return Err("expected s3://BUCKET or s3://BUCKET/PREFIX, of letters, digits and the signs - _ ."
                .to_owned());
        }
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let key = |name: &str| set(name).ok_or_else(|| format!("s3:// needs {name} in the environment"));
        let (access_key, secret_key) = (key("AWS_ACCESS_KEY_ID")?, key("AWS_SECRET_ACCESS_KEY")?);
        let mut options = Self::new(bucket, &access_key, &secret_key);
        prefix.clone_into(&mut options.prefix);
        options.session_token = set("AWS_SESSION_TOKEN");
        if let Some(region) = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")) {
            options.region = region;
        }
        if let Some(endpoint) = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL")) {
            let endpoint = endpoint.trim_end_matches('/');
            let host = ["http://", "https://"].iter().find_map(|scheme| endpoint.strip_prefix(scheme));
            // A name and a password would be in what is said of it.
            if host.is_none_or(|host| host.is_empty() || host.contains(['/', '@', '?', '#', ' '])) {
                return Err("expected AWS_ENDPOINT_URL as http://HOST:PORT or https://HOST".to_owned());
            }
            options.endpoint = Some(endpoint.to_owned());
        }
        options.in_host = match set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err("expected AWS_VIRTUAL_HOSTED_STYLE_REQUEST as true or false".to_owned()),
        };
        if !is_name(&options.region) {
            return Err("expected AWS_REGION as the name of a region".to_owned());
        }
        let keys = [Some(&options.access_key), Some(&options.secret_key), options.session_token.as_ref()];
        if keys.into_iter().flatten().any(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("expected AWS_ACCESS_KEY_ID and its like without spaces".to_owned());
        }
        Ok(options)
    }
}

#[cfg(feature = "s3")]
impl BucketOptions {
    /// The name of a file in the bucket.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }

    /// Whether the bucket's name is part of the path, not of the host. Amazon's certificates are for one level of names.
    pub(crate) fn is_in_path(&self) -> bool {
        if self.endpoint.is_some() { !self.in_host } else { self.bucket.contains('.') }
    }

    /// The beginning of addresses, and the host in it.
    pub(crate) fn origin(&self) -> (String, String) {
        let amazon = format!("https://s3.{}.amazonaws.com", self.region);
        let endpoint = self.endpoint.as_ref().unwrap_or(&amazon);
        let (scheme, host) = endpoint.split_once("://").unwrap_or(("https", endpoint));
        let default = if scheme == "http" { ":80" } else { ":443" };
        let host = host.strip_suffix(default).unwrap_or(host);
        let host = if self.is_in_path() { host.to_owned() } else { format!("{}.{host}", self.bucket) };
        (format!("{scheme}://{host}"), host)
    }
}

/// Without keys: they are for nobody's eyes.
impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, prefix, endpoint, region, .. } = self;
        write!(f, "BucketOptions({bucket}/{prefix} at {endpoint:?} in {region})")
    }
}

/// What a server bears of its clients.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a body that was packed.
    pub decoded: usize,
    /// Memory that making the tables of a file of symbols may take, in bytes, beyond four times the file's size; 4 GiB in all, unless this
    /// is more.
    pub table_memory: u64,
    /// Processor time that it may take; of other time twice as much.
    pub table_time: Duration,
    /// Bytes that each packed byte may stand for, beyond the first megabytes.
    pub ratio: usize,
    /// Bytes of a file of symbols.
    pub symbol_file: u64,
    /// Bodies of more than [`SMALL_BODY`] bytes that are in memory at the same time; further ones wait.
    pub large_bodies: usize,
    /// Connections at the same time; further ones wait.
    pub connections: usize,
    /// The time that a request's head may take.
    pub head_time: Duration,
    /// The time that a request's body may take.
    pub body_time: Duration,
    /// How long a client may read nothing of an answer before it is disconnected.
    pub answer_time: Duration,
    /// Reports of one request.
    pub reports: usize,
    /// Items of an envelope, and fields of a form.
    pub items: usize,
    /// Reports that wait to be worked; beyond these clients that know how to wait are asked to.
    pub waiting: u64,
    /// The time until an equal report is another one.
    pub window: Duration,
}

/// Bodies of so many bytes are never many enough to fill the memory.
pub const SMALL_BODY: usize = 256 << 10;

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body: 128 << 20,
            decoded: 256 << 20,
            ratio: 250,
            symbol_file: 4 << 30,
            table_memory: 512 << 20,
            table_time: Duration::from_secs(600),
            large_bodies: 4,
            connections: 512,
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(120),
            answer_time: Duration::from_secs(60),
            reports: 1000,
            items: 256,
            waiting: 200_000,
            window: Duration::from_secs(600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_told_as_amazons_programs_are() {
        let keys = [("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", "SECRET")];
        let parse = |place: &str, more: &[(&str, &str)]| {
            let all: Vec<_> = keys.iter().chain(more).copied().collect();
            BucketOptions::of_variables(place, &|name| {
                all.iter().rev().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let plain = parse("crashes/a/b/", &[("AWS_ENDPOINT_URL", "http://minio:9000/")]).unwrap();
        assert_eq!((plain.bucket.as_str(), plain.prefix.as_str()), ("crashes", "a/b"));
        assert_eq!(
            (plain.endpoint.as_deref(), plain.region.as_str()),
            (Some("http://minio:9000"), "us-east-1")
        );
        let text = format!("{plain:?}");
        assert!(!text.contains("ID") && !text.contains("SECRET"), "{text}");
        assert_eq!(parse("crashes", &[("AWS_REGION", "eu-north-1")]).unwrap().region, "eu-north-1");
        assert!(parse("a", &[("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")]).unwrap().in_host);
        for (place, more) in [
            ("", ("", "")),
            ("a b", ("", "")),
            ("a/../b", ("", "")),
            ("a/b//c", ("", "")),
            ("a?x", ("", "")),
            ("a", ("AWS_ENDPOINT_URL", "http://user:SECRET@host")),
            ("a", ("AWS_ENDPOINT_URL", "ftp://host")),
            ("a", ("AWS_SECRET_ACCESS_KEY", "")),
            ("a", ("AWS_SECRET_ACCESS_KEY", "SECRET\n")),
            ("a", ("AWS_REGION", "a/b")),
            ("a", ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "yes")),
        ] {
            let why = parse(place, &[more]).unwrap_err();
            assert!(why.contains("expected") || why.contains("needs"), "{why}");
            assert!(!why.contains("user:SECRET"), "{why}");
        }
    }

    #[cfg(feature = "s3")]
    #[test]
    fn addresses_are_those_of_the_service() {
        let mut options = BucketOptions::new("crashes", "ID", "SECRET");
        let amazon = "crashes.s3.us-east-1.amazonaws.com";
        assert_eq!(options.origin(), (format!("https://{amazon}"), amazon.to_owned()));
        options.endpoint = Some("http://host:80".to_owned());
        assert_eq!(options.origin(), ("http://host".to_owned(), "host".to_owned()));
        assert!(options.is_in_path());
        options.in_host = true;
        assert_eq!(options.origin(), ("http://crashes.host".to_owned(), "crashes.host".to_owned()));
        assert!(!options.is_in_path());
        options.endpoint = None;
        "a.b".clone_into(&mut options.bucket);
        assert_eq!(options.origin().1, "s3.us-east-1.amazonaws.com");
        options.prefix = "a".to_owned();
        assert_eq!(options.path_of("x"), "a/x");
    }
}
