//! What the command line changes of a comparison file.

use std::str::FromStr;

/// What the command line changes of a comparison file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// `KEY=VALUE`: override the values that the file sets for all arms; those of single arms override both.
    pub set: Vec<String>,
    /// The seeds in the place of the file's; none keeps those.
    pub seeds: Vec<u64>,
    /// Makes several arms of each.
    pub vary: Option<Variation>,
    /// Flags of the device, each after a space, which printed commands repeat.
    pub device_flags: String,
}

/// A key and the values that every arm gets in turn: `rl.lr=1e-4,2e-4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variation {
    pub(super) key: String,
    /// At least one.
    pub(super) values: Vec<String>,
}

impl FromStr for Variation {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (key, values) = text.split_once('=').ok_or("must be `KEY=VALUE,VALUE…`")?;
        Ok(Self { key: key.into(), values: values.split(',').map(String::from).collect() })
    }
}

impl Changes {
    /// As flags of the command line, each after a space.
    pub(super) fn flags(&self) -> String {
        let mut text = set_flags(&self.set);
        if !self.seeds.is_empty() {
            let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
            text += &format!(" --seeds {}", seeds.join(","));
        }
        if let Some(Variation { key, values }) = &self.vary {
            text += &format!(" --vary {}", shell_quoted(&format!("{key}={}", values.join(","))));
        }
        text + &self.device_flags
    }
}

/// The overrides as shell arguments, each after a space.
pub(super) fn set_flags(values: &[String]) -> String {
    values.iter().map(|value| format!(" --set {}", shell_quoted(value))).collect()
}

/// `argument` as one word of a POSIX shell, in quotes where it needs them.
pub fn shell_quoted(argument: &str) -> String {
    let needs_no_quotes = |c: char| c.is_alphanumeric() || "-_=./,:+%@".contains(c);
    if !argument.is_empty() && argument.chars().all(needs_no_quotes) {
        argument.into()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_where_a_shell_needs_it() {
        let found = ["rl.lr=3e-4", "rl.loss.ratio_clip=[]", "out dir", "it's", ""].map(shell_quoted);
        assert_eq!(found, ["rl.lr=3e-4", "'rl.loss.ratio_clip=[]'", "'out dir'", "'it'\\''s'", "''"]);
    }
}
