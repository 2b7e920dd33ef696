//! What several modules share: the built binary, shops, small experiments, servers and recordings.

pub(crate) mod command;
pub(crate) mod corner_shop;
pub(crate) mod experiment;
pub(crate) mod model;
pub(crate) mod recordings;
pub(crate) mod server;
pub(crate) mod stop;

/// Runs assertions whose file snapshots lie in `snapshots/<area>/`.
pub(crate) fn in_area(area: &str, assertions: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/snapshots/{area}", env!("CARGO_MANIFEST_DIR")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(assertions);
}
