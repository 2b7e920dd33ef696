//! Episode files of a run, which grows: each request reads what it shows.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use webshop_agent::{Episode, read_episode};

use super::runs::{RunError, Runs};
use crate::replay::recordings::Recording;

/// The lines of a file, without an incomplete last one.
fn lines(path: &Path) -> io::Result<impl Iterator<Item = io::Result<String>>> {
    let mut file = BufReader::new(File::open(path)?);
    Ok(std::iter::from_fn(move || {
        let mut line = String::new();
        match file.read_line(&mut line) {
            Ok(_) if line.ends_with('\n') => Some(Ok(line)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }))
}

/// The first episodes of a file, at most `limit`, as they were recorded; they are not replayed.
pub(super) fn first(path: &Path, limit: usize) -> Result<Vec<Episode>, RunError> {
    let mut episodes = Vec::new();
    for (line, number) in lines(path)?.zip(1..).take(limit) {
        let read = Episode::read(&line?);
        episodes.push(read.map_err(|error| format!("`{}`: line {number}: {error}", path.display()))?);
    }
    Ok(episodes)
}

/// The episode of a file at `index`, from 0, replayed in its shop, and whether another one follows; `None` if the file
/// has fewer.
pub(super) fn nth(
    runs: &dyn Runs,
    run: usize,
    path: &Path,
    index: usize,
) -> Result<Option<(Recording, bool)>, RunError> {
    let mut lines = lines(path)?.skip(index);
    let Some(line) = lines.next().transpose()? else { return Ok(None) };
    let number = index + 1;
    let named = |error: &dyn std::fmt::Display| format!("`{}`: line {number}: {error}", path.display());
    let read = Episode::read(&line).map_err(|error| named(&error))?;
    let shop = runs.shop(run, read.meta.fingerprint.generated).map_err(|error| named(&error))?;
    // The error names the line.
    let episode =
        read_episode(&line, number, &shop).map_err(|error| format!("`{}`: {error}", path.display()))?;
    Ok(Some((Recording { shop, episode }, lines.next().is_some())))
}
