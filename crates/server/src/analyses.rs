//! A kept report as it reads with the symbols of this moment.

use crate::http::Refused;
use crate::state::State;
use crate::views::Report;
use axum::http::StatusCode;
use backtrail::{Analysis, Limits};

/// Reads a report again, with all of its stacks.
pub(crate) fn analysis(app: &State, report: &Report) -> Result<Analysis, Refused> {
    let bytes = app.objects.get(&report.blob)?;
    let symbols = app.symbols.of_project(report.project);
    Analysis::new(&bytes, &symbols, &Limits::default()).map_err(|error| {
        Refused::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the report cannot be read: {error}"))
    })
}
