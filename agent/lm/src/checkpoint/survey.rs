//! A report on a model folder: its contents, and all problems that prevent loading it.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::chat::ChatTemplate;
use crate::checkpoint::{StopTokens, WeightFiles, WeightType, load_config};
use crate::error::LmError;
use crate::qwen2::Qwen2Config;
use crate::tokenizer::BpeTokenizer;

/// The contents of a folder. A part that cannot be read is `None` and has an entry in `problems`.
#[derive(Debug, Default, Serialize)]
pub struct Survey {
    /// The sizes of the model.
    pub shape: Option<Qwen2Config>,
    /// Number of parameter values; a tied head counts once.
    pub n_parameters: Option<usize>,
    /// Whether the head is tied to the embedding.
    pub tied: Option<bool>,
    /// The type of the weights; `mixed` if there are several.
    pub weight_type: Option<&'static str>,
    /// Number of weight files.
    pub n_weight_files: Option<usize>,
    /// Number of ids of the tokenizer.
    pub n_token_ids: Option<usize>,
    /// Tokens that end a turn, as text.
    pub stop_tokens: Option<Vec<String>>,
    /// `with tools` or `without tools`: whether the chat template uses `tools`; `None` without a template.
    pub chat_template: Option<&'static str>,
    /// Problems that prevent loading, one message each.
    pub problems: Vec<String>,
    /// Limitations that do not prevent loading.
    pub remarks: Vec<String>,
}

impl Survey {
    /// Inspects a folder. With `reads_weights`, all values are read and checked to be finite.
    pub fn of(folder: &Path, reads_weights: bool) -> Self {
        let mut survey = Self::default();
        let config = survey.note(load_config(folder));
        let mut files = survey.note(WeightFiles::open(folder));
        if let Some(config) = &config {
            survey.n_parameters = Some(config.n_parameters());
            survey.tied = Some(config.tie_word_embeddings);
        }
        if let Some(files) = &files {
            survey.weight_type = Some(files.weight_type().map_or("mixed", WeightType::name));
            survey.n_weight_files = Some(files.n_files());
        }
        if let Some((config, files)) = config.as_ref().zip(files.as_mut()) {
            let fit =
                files.check(config).and_then(|()| if reads_weights { files.check_values() } else { Ok(()) });
            survey.note(fit);
        }
        let tokenizer = survey.note(BpeTokenizer::load(folder));
        survey.n_token_ids = tokenizer.as_ref().map(BpeTokenizer::vocab_size);
        if let Some((config, tokenizer)) = config.as_ref().zip(tokenizer.as_ref())
            && let Some(stop) = survey.note(StopTokens::load(folder, config, tokenizer))
        {
            survey.stop_tokens = Some(stop.ids().iter().map(|&id| tokenizer.decode(&[id])).collect());
        }
        match ChatTemplate::load(folder) {
            Ok(template) => {
                let knows_tools = template.source(true).is_ok_and(|source| source.contains("tools"));
                survey.chat_template = Some(if knows_tools { "with tools" } else { "without tools" });
            }
            Err(error) => survey.remarks.push(error.to_string()),
        }
        survey.shape = config;
        survey
    }

    /// The value, or `None` after recording the error as a problem.
    fn note<T>(&mut self, result: Result<T, LmError>) -> Option<T> {
        result.map_err(|error| self.problems.push(error.to_string())).ok()
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(shape) = &self.shape {
            let heads = shape.heads();
            writeln!(
                f,
                "shape          layers {}, hidden {}, feed-forward {}",
                shape.num_hidden_layers, shape.hidden_size, shape.intermediate_size
            )?;
            writeln!(
                f,
                "attention      {} heads of {} over {} key heads, {} positions, base {}",
                heads.n_heads,
                heads.head_dim,
                heads.n_kv_heads,
                shape.max_position_embeddings,
                shape.rope_theta
            )?;
            let head = if shape.tie_word_embeddings { "tied to the embedding" } else { "of its own" };
            writeln!(f, "vocabulary     {}, head {head}", shape.vocab_size)?;
        }
        if let Some(n_parameters) = self.n_parameters {
            writeln!(f, "parameters     {n_parameters}")?;
        }
        if let Some((weight_type, n_files)) = self.weight_type.zip(self.n_weight_files) {
            let files = if n_files == 1 { "file" } else { "files" };
            writeln!(f, "weights        {weight_type} in {n_files} {files}")?;
        }
        if let Some(n_ids) = self.n_token_ids {
            writeln!(f, "tokenizer      {n_ids} ids")?;
        }
        if let Some(stop_tokens) = &self.stop_tokens {
            writeln!(f, "ends a turn    {}", stop_tokens.join(" "))?;
        }
        writeln!(f, "chat template  {}", self.chat_template.unwrap_or("none"))?;
        for remark in &self.remarks {
            writeln!(f, "note           {remark}")?;
        }
        for problem in &self.problems {
            writeln!(f, "problem        {problem}")?;
        }
        write!(f, "{}", if self.problems.is_empty() { "can be loaded" } else { "cannot be loaded" })
    }
}
