//! Samples as they come in, and what came to nothing.

use std::collections::BTreeMap;

use webshop_agent::shop_r1::Sample;

/// What was collected.
#[derive(Default)]
pub struct Harvest {
    /// In the order of the trips, each with its own id.
    pub samples: Vec<Sample>,
    /// What was left out, by reason, in the order of first appearance.
    skipped: Vec<Skipped>,
    /// How many trips there are samples of.
    pub n_trips: usize,
    /// How many dead ends are lacking.
    pub n_missing: usize,
    /// How often each visit came.
    visits: BTreeMap<String, usize>,
}

/// What was left out for one reason.
struct Skipped {
    reason: String,
    n: usize,
    first: String,
}

impl Harvest {
    /// Adds the samples of a trip. If there was one of that name, it is called its second, third and so on.
    pub fn add(&mut self, mut samples: Vec<Sample>) {
        let visit = |sample: &Sample| sample.id.rsplit_once('-').map(|(visit, _)| visit.to_owned());
        if let Some(visit) = samples.first().and_then(visit) {
            let n = self.visits.entry(visit.clone()).or_default();
            *n += 1;
            for sample in samples.iter_mut().filter(|_| *n > 1) {
                sample.id = format!("{visit}.{n}-{}", sample.step);
            }
            self.n_trips += 1;
        }
        self.samples.append(&mut samples);
    }

    /// Leaves out a trip, found at `place`.
    pub fn skip(&mut self, reason: &str, place: String) {
        match self.skipped.iter_mut().find(|skipped| skipped.reason == reason) {
            Some(skipped) => skipped.n += 1,
            None => self.skipped.push(Skipped { reason: reason.into(), n: 1, first: place }),
        }
    }

    /// A line for each reason for which something was left out.
    pub fn left_out(&self) -> Vec<String> {
        let told = |Skipped { reason, n, first }: &Skipped| {
            let trips = if *n == 1 { "trip" } else { "trips" };
            format!("left out: {n} {trips}, as {reason} (the first: {first})")
        };
        let mut lines: Vec<String> = self.skipped.iter().map(told).collect();
        if self.n_missing > 0 {
            lines.push(format!("left out: {} dead ends, as no more are found", self.n_missing));
        }
        lines
    }
}
