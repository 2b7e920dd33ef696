//! What a GPU must show, in one go: `webshop gpu-check`.
//!
//! [`GpuCheck`] says what is looked at; [`GpuCheck::run`] writes Markdown as it goes, so that what was found is kept if
//! something later fails. [`agreement`] compares kernels with their twins and the GPU's engine with the CPU's; [`speed`]
//! measures prefill, decoding and a training step of models with random weights. A part that fails is told with its
//! reason and does not keep the others from being made.
//!
//! The same program runs on the CPU with a tiny model, which proves all of it but the GPU. It judges agreement only:
//! what a speed is worth is for the reader.

pub mod agreement;
pub mod speed;


use std::io::Write;

use webshop_lm::KnownShape;
use webshop_lm::device::Compute;

use crate::error::Result;

/// Ids of the tiny model; the others have their own number.
const SMALL_VOCABULARY: usize = 2048;

/// One of the things that can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Every kernel against its plain twin.
    Twins,
    /// The device's engine against the CPU's.
    Agreement,
    /// Tokens a second, reading prompts.
    Prefill,
    /// Tokens a second, one for each lane at a time.
    Decode,
    /// A whole training step.
    Train,
}

impl Part {
    /// All of them, in the order in which they are made.
    pub const ALL: [Self; 5] = [Self::Twins, Self::Agreement, Self::Prefill, Self::Decode, Self::Train];
}

/// What is looked at.
#[derive(Clone, Debug)]
pub struct GpuCheck {
    /// Where, in which format and with which kernels.
    pub compute: Compute,
    /// Which parts.
    pub parts: Vec<Part>,
    /// Which models.
    pub shapes: Vec<KnownShape>,
    /// Lanes side by side.
    pub batches: Vec<usize>,
    /// Tokens in each lane while it is decoded.
    pub context: usize,
    /// Tokens of a prompt.
    pub prompt: usize,
    /// Sequences of a training step and their length.
    pub train: (usize, usize),
    /// Tokens of a training step that are computed together.
    pub micro_batch_tokens: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Comparisons outside of their tolerance.
    pub differences: usize,
    /// Parts that could not be made.
    pub failures: usize,
}

impl GpuCheck {
    /// Looks at everything and writes what it finds to `out`.
    ///
    /// Fails if `out` cannot be written; a part that fails is counted.
    pub fn run(&self, out: &mut dyn Write) -> Result<Verdict> {
        let compute = &self.compute;
        let mut page = Page { out, verdict: Verdict::default() };
        page.line(&format!("Computed on: {compute}."))?;
        if let Some((name, bytes)) = compute.describe()? {
            page.line(&format!("GPU: {name}, {:.1} GiB.", bytes as f64 / f64::from(1 << 30)))?;
        }
        for part in &self.parts {
            match part {
                Part::Twins => agreement::twins(self, &mut page)?,
                Part::Agreement => agreement::engines(compute, &mut page)?,
                Part::Prefill => speed::prefill(self, &mut page)?,
                Part::Decode => speed::decode(self, &mut page)?,
                Part::Train => speed::train(self, &mut page)?,
            }
        }
        Ok(page.verdict)
    }
}

/// Markdown in the making.
struct Page<'o> {
    out: &'o mut dyn Write,
    verdict: Verdict,
}

impl Page<'_> {
    fn line(&mut self, text: &str) -> Result<()> {
        let written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        written.map_err(|error| crate::error::TrainingError::io("write", "standard output".as_ref(), error))
    }

    fn table(&mut self, title: &str, columns: &[&str]) -> Result<()> {
        self.line(&format!("\n## {title}\n"))?;
        self.row(columns)?;
        self.row(&vec!["---"; columns.len()])
    }

    fn row<S: AsRef<str>>(&mut self, cells: &[S]) -> Result<()> {
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        self.line(&format!("| {} |", cells.join(" | ")))
    }

    /// A row of a comparison, judged by its tolerance.
    fn judged(&mut self, cells: &[String], error: f64, tolerance: f64) -> Result<()> {
        let is_equal = error <= tolerance;
        self.verdict.differences += usize::from(!is_equal);
        let judgement = if is_equal { "equal" } else { "DIFFERENT" };
        let rest = [format!("{error:.1e}"), format!("{tolerance:.0e}"), judgement.to_owned()];
        self.row(&[cells, &rest[..]].concat())
    }

    /// A row that could not be made.
    fn failed(&mut self, cells: &[String], error: &crate::error::TrainingError) -> Result<()> {
        self.verdict.failures += 1;
        self.row(&[cells, &[failure(error)][..]].concat())
    }
}

/// Why something was not made, for a cell of a table: the first line, what follows is a trace of calls.
fn failure(error: &crate::error::TrainingError) -> String {
    let told = error.to_string();
    format!("failed: {}", told.lines().next().unwrap_or_default().replace('|', " "))
}

#[cfg(test)]
mod tests {
    use webshop_lm::device::{DeviceRequest, KernelChoice};

    use super::*;

    fn check(parts: Vec<Part>) -> (String, Verdict) {
        let check = GpuCheck {
            compute: Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Own).unwrap(),
            parts,
            shapes: vec![KnownShape::Tiny],
            batches: vec![1, 2],
            context: 40,
            prompt: 24,
            train: (3, 20),
            micro_batch_tokens: 40,
        };
        let mut page = Vec::new();
        let verdict = check.run(&mut page).unwrap();
        (String::from_utf8(page).unwrap(), verdict)
    }

    #[test]
    fn the_engines_agree_on_the_cpu() {
        let (page, verdict) = check(vec![Part::Twins, Part::Agreement]);
        assert_eq!(verdict, Verdict::default(), "{page}");
        assert!(page.contains("greedy tokens") && page.contains("gradients"), "{page}");
        // There are no kernels to compare, and it is not pretended that there were.
        assert!(page.contains("no kernels of ours") && !page.contains("| Own |"), "{page}");
    }

    #[test]
    fn every_speed_is_told() {
        let (page, verdict) = check(vec![Part::Prefill, Part::Decode, Part::Train]);
        assert_eq!(verdict, Verdict::default(), "{page}");
        // Two batches are read and decoded, one step is trained.
        assert_eq!(page.matches("| tiny | 1 |").count(), 2, "{page}");
        assert_eq!(page.matches("| tiny | 2 |").count(), 2, "{page}");
        assert_eq!(page.matches("| tiny | 3 × 20 |").count(), 1, "{page}");
    }

    #[test]
    fn a_difference_is_counted_and_a_failure_told() {
        let mut written = Vec::new();
        let mut page = Page { out: &mut written, verdict: Verdict::default() };
        page.judged(&["a".into()], 0.1, 0.2).unwrap();
        page.judged(&["b".into()], f64::NAN, 0.2).unwrap();
        page.judged(&["c".into()], 0.3, 0.2).unwrap();
        page.failed(&["d".into()], &crate::error::TrainingError::NoRun("x|y".into())).unwrap();
        assert_eq!(page.verdict, Verdict { differences: 2, failures: 1 });
        let text = String::from_utf8(written).unwrap();
        assert!(text.contains("| c | 3.0e-1 | 2e-1 | DIFFERENT |"), "{text}");
        assert!(text.contains("| d | failed: `x y` holds no run"), "{text}");
    }
}
