//! Adapter folders: `adapter_config.json` and `adapter_model.safetensors`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use candle_core::{Tensor, Var};

use crate::checkpoint::{Shard, WeightType, invalid, read_json, unwritable, write_json, write_tensors};
use crate::error::LmError;
use crate::lora::{Lora, LoraConfig, LoraModule, Matrix, module_name};

const CONFIG: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";

/// PEFT's prefix of module names.
const PREFIX: &str = "base_model.model.";

impl Lora {
    /// Reads the adapter of a folder for a model with these matrices
    /// ([`Qwen2::matrices`](crate::Qwen2::matrices)). Fails, naming file and tensor, if a selected module has
    /// no A and B of the right shape, or if there is any other tensor.
    pub fn load(folder: &Path, matrices: &[Matrix]) -> Result<Self, LmError> {
        let config: LoraConfig = read_json(&folder.join(CONFIG))?;
        let in_config = |error: LmError| invalid(&folder.join(CONFIG), error);
        config.validate().map_err(in_config)?;
        let path = folder.join(WEIGHTS);
        let mut file = Shard::open(&path)?;
        let mut unread: BTreeSet<String> = file.names().collect();
        let mut modules = Vec::new();
        for Matrix { parameter, out, inputs } in matrices {
            let adapted = config.rank_and_scale(module_name(parameter)).map_err(in_config)?;
            let Some((rank, scale)) = adapted else { continue };
            let mut read = |side: &str, shape: [usize; 2]| {
                let name = tensor_name(parameter, side);
                if !unread.remove(&name) {
                    return Err(invalid(&path, format!("it has no `{name}`")));
                }
                let found = &file.info(&name).shape;
                if *found != shape {
                    return Err(invalid(&path, format!("`{name}` has shape {found:?}, expected {shape:?}")));
                }
                Ok(Var::from_tensor(&file.read(&name)?)?)
            };
            let (a, b) = (read("A", [rank, *inputs])?, read("B", [*out, rank])?);
            modules.push(LoraModule { parameter: parameter.clone(), a, b, scale });
        }
        if let Some(name) = unread.first() {
            return Err(invalid(
                &path,
                format!("`{name}` does not belong to a module that `{CONFIG}` selects"),
            ));
        }
        if modules.is_empty() {
            return Err(in_config(config.no_target()));
        }
        Ok(Self { config, modules })
    }

    /// The configuration of the adapter of a folder, if there is one.
    pub fn find(folder: &Path) -> Result<Option<LoraConfig>, LmError> {
        let path = folder.join(CONFIG);
        if path.is_file() { read_json(&path).map(Some) } else { Ok(None) }
    }

    /// Writes the adapter as f32 into a folder, which is created if it does not exist.
    pub fn save(&self, folder: &Path) -> Result<(), LmError> {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        let mut tensors: Vec<(String, Tensor)> = Vec::new();
        for LoraModule { parameter, a, b, .. } in &self.modules {
            tensors.push((tensor_name(parameter, "A"), a.as_detached_tensor()));
            tensors.push((tensor_name(parameter, "B"), b.as_detached_tensor()));
        }
        write_tensors(&folder.join(WEIGHTS), &tensors, WeightType::F32)?;
        write_json(&folder.join(CONFIG), &self.config)
    }
}

fn tensor_name(parameter: &str, side: &str) -> String {
    format!("{PREFIX}{}.lora_{side}.weight", module_name(parameter))
}
