//! A kept report as it reads with the symbols of this moment.

use crate::http::Refused;
use crate::icicle::Icicle;
use crate::state::State;
use crate::views::{self, Report};
use axum::http::StatusCode;
use backtrail::{Analysis, CaptureKind, Limits};
use std::path::Path;

/// Whether it is an ELF core. Its images are named by paths that reading it would open on this machine, and a stranger chose
/// them.
pub(crate) fn is_core(bytes: &[u8]) -> bool {
    CaptureKind::of(bytes) == Some(CaptureKind::ElfCore)
}

/// What is said of a core.
pub(crate) const NO_CORES: &str =
    "ELF cores are not taken, since they name files of this machine: use `backtrail stacks --core`";

/// What is said of a report that is older than reports are kept.
pub(crate) const REMOVED: &str = "the report's bytes were removed: it is older than this server keeps them";

/// A report's bytes as they came.
pub(crate) fn bytes(app: &State, report: &Report) -> Result<Vec<u8>, Refused> {
    if report.dropped {
        return Err(Refused::new(StatusCode::GONE, REMOVED));
    }
    Ok(app.objects.get(&app.database, &report.blob)?)
}

/// A report of a project, by its id.
pub(crate) fn report(app: &State, project: i64, event_id: &str) -> Result<Report, Refused> {
    let found = app.database.read(|connection| views::report(connection, project, event_id))?;
    found.ok_or_else(Refused::not_found)
}

/// An attachment of a report, by its position: its name and its bytes.
pub(crate) fn attachment(app: &State, report: &Report, position: i64) -> Result<(String, Vec<u8>), Refused> {
    let all = app.database.read(|connection| views::attachments(connection, report))?;
    let found = all.into_iter().find(|attachment| attachment.position == position);
    let found = found.ok_or_else(Refused::not_found)?;
    let bytes = app.objects.get(&app.database, &found.blob)?;
    Ok((found.name, bytes))
}

/// The stacks of an issue's latest reports, merged. A report that cannot be read any more is left out.
pub(crate) fn stacks(app: &State, reports: &[Report]) -> Icicle {
    let mut icicle = Icicle::default();
    for report in reports.iter().filter(|report| !report.dropped && report.state == "done") {
        if let Ok(analysis) = analysis(app, report) {
            icicle.add(&analysis.report);
        }
    }
    icicle.sort();
    icicle
}

/// Reads a report again, with all of its stacks.
pub(crate) fn analysis(app: &State, report: &Report) -> Result<Analysis, Refused> {
    let bytes = bytes(app, report)?;
    if is_core(&bytes) {
        return Err(Refused::new(StatusCode::UNPROCESSABLE_ENTITY, NO_CORES));
    }
    let sources = app.owners.now(&app.database, &app.objects, report.project)?;
    let symbols = app.symbols.with_owners(report.project, &sources);
    let read = Analysis::with_rules(&bytes.as_slice().into(), &symbols, &sources.rules, &Limits::default())
        .map_err(|error| {
            Refused::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the report cannot be read: {error}"))
        });
    let mut analysis = read?;
    hide_directory(&mut analysis, &app.config.data.join(""));
    Ok(analysis)
}

/// Where the server keeps its files is nobody's business: what is said of them begins below.
fn hide_directory(analysis: &mut Analysis, directory: &Path) {
    let directory = directory.display().to_string();
    for image in analysis.report.all_processes_mut().flat_map(|process| &mut process.images) {
        for said in image.symbols.tried.iter_mut().chain(&mut image.symbols.files) {
            *said = said.replace(&directory, "");
        }
    }
}
