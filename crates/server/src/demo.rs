//! Reports and symbols from within the process: how a server comes by its samples.

use crate::error::ServerError;
use crate::http::Refused;
use crate::intake;
use crate::projects::{self, Project};
use crate::server::Server;
use crate::state::State;
use crate::symbols;

impl Server {
    /// Keeps a report for the first project, as if a client had sent it.
    ///
    /// # Errors
    /// Where it is none, or cannot be kept.
    pub fn add_report(&self, report: &[u8]) -> Result<(), ServerError> {
        let added = first(self.app()).and_then(|project| intake::keep(self.app(), &project, report.to_vec()));
        added.map(drop).map_err(|refused| failed("a report", &refused))
    }

    /// Keeps a binary or debug file for the first project, as if somebody had uploaded it.
    ///
    /// # Errors
    /// Where it is none, or cannot be kept.
    pub fn add_symbols(&self, name: &str, bytes: &[u8]) -> Result<(), ServerError> {
        let keep = || {
            let received = symbols::Upload::begin(self.app())?.write(bytes)?.finish()?;
            symbols::keep(self.app(), &first(self.app())?, name, &received, None)
        };
        keep().map(drop).map_err(|refused| failed(name, &refused))
    }
}

fn first(app: &State) -> Result<Project, Refused> {
    app.database.read(projects::all)?.into_iter().next().ok_or_else(Refused::not_found)
}

fn failed(what: &str, refused: &Refused) -> ServerError {
    ServerError::files(what, std::io::Error::other(refused.message().to_owned()))
}
