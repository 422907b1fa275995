//! Symbols in and out: uploads, and the protocols of those who ask for them.

use crate::state::App;
use axum::Router;

/// The paths of symbols.
pub(crate) fn routes() -> Router<App> {
    Router::new()
}
