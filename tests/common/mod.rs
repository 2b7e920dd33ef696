//! What the tests of the whole house share.

/// Runs assertions whose file snapshots lie in `snapshots/<area>/`.
pub fn in_area(area: &str, assertions: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/snapshots/{area}", env!("CARGO_MANIFEST_DIR")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(assertions);
}
