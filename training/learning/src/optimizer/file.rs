//! The file of the optimizer state: `first.NAME` and `second.NAME` as flat f32, the step count in the header.
//!
//! Names are those of the checkpoint on both backends; `second` is empty for parameters updated by Muon.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::error::{Result, TrainingError};

/// Prefixes of the tensor names.
const KINDS: [&str; 2] = ["first", "second"];

/// Writes the step count and the first and second moments of each parameter.
pub(crate) fn save<'a>(
    path: &Path,
    step: u64,
    moments: impl IntoIterator<Item = (&'a str, [&'a [f32]; 2])>,
) -> Result<()> {
    let named = moments.into_iter().flat_map(|(name, both)| {
        let both = KINDS.into_iter().zip(both);
        both.map(move |(kind, values)| (format!("{kind}.{name}"), bytes(values), values.len()))
    });
    let owned: Vec<(String, Vec<u8>, usize)> = named.collect();
    let views = owned.iter().map(|(name, bytes, size)| {
        let view =
            TensorView::new(Dtype::F32, vec![*size], bytes).expect("4 bytes were written for each value");
        (name.as_str(), view)
    });
    let header = HashMap::from([("step".to_string(), step.to_string())]);
    let file = safetensors::serialize(views, Some(header)).map_err(|e| TrainingError::bad_file(path, e))?;
    std::fs::write(path, file).map_err(|e| TrainingError::io("write", path, e))
}

/// Reads the step count and both moments of each of these parameters. Fails if a moment does not have the
/// given size.
pub(crate) fn load<'a>(
    path: &Path,
    sizes: impl IntoIterator<Item = (&'a str, [usize; 2])>,
) -> Result<(u64, Vec<[Vec<f32>; 2]>)> {
    let file = std::fs::read(path).map_err(|e| TrainingError::io("read", path, e))?;
    let bad = |problem: String| TrainingError::bad_file(path, problem);
    let tensors = SafeTensors::deserialize(&file).map_err(|e| bad(e.to_string()))?;
    let (_, header) = SafeTensors::read_metadata(&file).map_err(|e| bad(e.to_string()))?;
    let step = header.metadata().as_ref().and_then(|header| header.get("step")?.parse().ok());
    let step = step.ok_or_else(|| bad("its header has no `step`".into()))?;
    let read = |kind: &str, name: &str, size: usize| {
        let stored = tensors.tensor(&format!("{kind}.{name}")).map_err(|e| bad(e.to_string()))?;
        if stored.dtype() != Dtype::F32 || stored.data().len() != 4 * size {
            return Err(bad(format!("`{kind}.{name}` is not {size} values of f32")));
        }
        let values = stored.data().chunks_exact(4);
        Ok(values.map(|four| f32::from_le_bytes(four.try_into().expect("chunks of four"))).collect())
    };
    let moments = sizes
        .into_iter()
        .map(|(name, [first, second])| Ok([read(KINDS[0], name, first)?, read(KINDS[1], name, second)?]));
    Ok((step, moments.collect::<Result<_>>()?))
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
