//! The files of a model folder other than configuration and weights: tokenizer, chat template, generation
//! settings, few-shot examples.
//!
//! They are copied unchanged into the folder of a fine-tuned or merged model. So are the templates in
//! [`ADDITIONAL_TEMPLATES`].

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkpoint::{unreadable, unwritable};
use crate::error::LmError;

/// The file of few-shot examples that precede every prompt.
pub const FEW_SHOT: &str = "few_shot.json";

/// The names of these files; each may be absent.
const NAMES: [&str; 9] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
    FEW_SHOT,
];

/// The folder of further chat templates, such as `tool_use.jinja`.
pub(crate) const ADDITIONAL_TEMPLATES: &str = "additional_chat_templates";

/// The companion files of one folder, in memory, with their paths in it.
#[derive(Clone, Debug)]
pub struct Companions(Vec<(PathBuf, Vec<u8>)>);

impl Companions {
    /// Reads the files that exist in `folder`.
    pub fn read(folder: &Path) -> Result<Self, LmError> {
        let mut paths: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
        paths.retain(|path| folder.join(path).is_file());
        let templates = jinja_files(&folder.join(ADDITIONAL_TEMPLATES))?;
        paths.extend(
            templates
                .iter()
                .map(|path| Path::new(ADDITIONAL_TEMPLATES).join(path.file_name().unwrap_or_default())),
        );
        let read = |path: PathBuf| -> Result<_, LmError> {
            let file = folder.join(&path);
            let bytes = fs::read(&file).map_err(|error| unreadable(&file, error))?;
            Ok((path, bytes))
        };
        Ok(Self(paths.into_iter().map(read).collect::<Result<_, LmError>>()?))
    }

    /// Writes the files into an existing folder.
    pub fn write(&self, folder: &Path) -> Result<(), LmError> {
        for (path, bytes) in &self.0 {
            let file = folder.join(path);
            let parent = file.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(|error| unwritable(parent, error))?;
            fs::write(&file, bytes).map_err(|error| unwritable(&file, error))?;
        }
        Ok(())
    }
}

/// The paths of the templates in a folder, sorted; none if there is no such folder.
pub(crate) fn jinja_files(folder: &Path) -> Result<Vec<PathBuf>, LmError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |error| unreadable(folder, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "jinja"));
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_further_templates_are_copied_and_others_are_not() {
        let [from, to] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join(ADDITIONAL_TEMPLATES)).unwrap();
        let tools = format!("{ADDITIONAL_TEMPLATES}/tool_use.jinja");
        for name in ["chat_template.jinja", &tools, "notes.txt"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        Companions::read(from.path()).unwrap().write(to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("chat_template.jinja")).unwrap(), b"chat_template.jinja");
        assert_eq!(fs::read(to.path().join(&tools)).unwrap(), tools.as_bytes());
        assert!(!to.path().join("notes.txt").exists());
    }
}
