//! What several modules share: the built binary, shops, small experiments, servers and recordings.

pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod corner_shop;
pub(crate) mod experiment;
pub(crate) mod model;
pub(crate) mod recordings;
pub(crate) mod server;
pub(crate) mod stop;

/// Whether the matrices of training runs are run whole: with the feature `exhaustive`, as the nightly tests are. Otherwise
/// a representative part of each is.
pub(crate) const EXHAUSTIVE: bool = cfg!(feature = "exhaustive");

/// All cases of an exhaustive test run, or those at the places `representative`.
pub(crate) fn cases<T: Clone>(all: &[T], representative: &[usize]) -> Vec<T> {
    match EXHAUSTIVE {
        true => all.to_vec(),
        false => representative.iter().map(|&place| all[place].clone()).collect(),
    }
}

/// Runs assertions whose file snapshots lie in `snapshots/<area>/`.
pub(crate) fn in_area(area: &str, assertions: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/snapshots/{area}", env!("CARGO_MANIFEST_DIR")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(assertions);
}
