//! The Markdown tables on standard output, and the number of differences and failures.

use std::process::ExitCode;

use webshop_lm::LmError;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Comparisons with an error above their tolerance.
    n_differences: usize,
    /// Parts that failed.
    n_failures: usize,
}

impl Report {
    /// Begins a table.
    pub(crate) fn table(&self, title: &str, columns: &[&str]) {
        println!("\n## {title}\n");
        self.row(columns);
        self.row(&vec!["---"; columns.len()]);
    }

    /// Writes a row of a table.
    pub(crate) fn row<S: AsRef<str>>(&self, cells: &[S]) {
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        println!("| {} |", cells.join(" | "));
    }

    /// Writes a row of a comparison, and counts it if `error` exceeds `tolerance` or is NaN.
    pub(crate) fn compared(&mut self, cells: &[String], error: f64, tolerance: f64) {
        let is_equal = error <= tolerance;
        self.n_differences += usize::from(!is_equal);
        let result = if is_equal { "equal" } else { "DIFFERENT" };
        let rest = [format!("{error:.1e}"), format!("{tolerance:.0e}"), result.to_owned()];
        self.row(&[cells, &rest].concat());
    }

    /// Writes a row with the error of a part that failed, and counts it.
    pub(crate) fn failed(&mut self, cells: &[String], error: &LmError) {
        self.n_failures += 1;
        // The lines after the first are a backtrace.
        let message = error.to_string().lines().next().unwrap_or_default().replace('|', " ");
        self.row(&[cells, &[format!("failed: {message}")]].concat());
    }

    /// 0 if all results agree, 1 if a comparison differs, 2 if a part failed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match (self.n_failures, self.n_differences) {
            (0, 0) => ExitCode::SUCCESS,
            (0, _) => ExitCode::from(1),
            _ => ExitCode::from(2),
        }
    }
}

/// Bytes as GiB.
pub(crate) fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
