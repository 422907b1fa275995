//! What codes and words mean. Data only; the rules read it.

pub(crate) mod access;
pub(crate) mod esr;
pub(crate) mod exceptions;
pub(crate) mod guard;
pub(crate) mod java_exceptions;
pub(crate) mod kill;
pub(crate) mod messages;
pub(crate) mod namespaces;
pub(crate) mod resource;
pub(crate) mod runtime_reports;
pub(crate) mod runtimes;
pub(crate) mod sanitizer_findings;
pub(crate) mod telling;
pub(crate) mod throwers;
pub(crate) mod waits;
pub(crate) mod windows;
