//! Resolves configuration keys: lays files and overrides over the defaults and reports unknown keys.
//!
//! The serialized configuration is the schema: a key exists if the configuration has it, and a value fits if
//! it has the same TOML type. Two conversions are made: an integer for a float, and a bare number for a
//! string (`source = 100`). Every value is tried on the whole configuration as it is set, so that an error
//! always names its key.
//!
//! `rl.loss.kind` decides which other keys `[rl.loss]` has. Setting it replaces the section by the parameters
//! of the new kind: those that the previous kind had too keep their values, the others get their defaults. In
//! a file it is set before the other keys of its section.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use strsim::levenshtein;
use toml::{Table, Value};

use crate::config::{Config, LossConfig, LossKind};
use crate::error::{Result, TrainingError};

/// The key that decides which parameters `[rl.loss]` has.
const LOSS_KIND: &str = "rl.loss.kind";

/// A value in which two configurations differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyDifference {
    /// The full dotted key.
    pub(crate) key: String,
    /// Its value in this configuration, as TOML; empty if this one has no such key.
    pub(crate) here: String,
    /// Its value in the other one.
    pub(crate) there: String,
}

impl Config {
    /// All values in which the two differ, by key.
    pub(crate) fn differences(&self, other: &Self) -> Vec<KeyDifference> {
        let [here, there] = [self, other].map(|config| Table::try_from(config).expect("it serializes"));
        let written = |table: &Table, key: &str| lookup(table, key).map(Value::to_string).unwrap_or_default();
        let keys: BTreeSet<String> = leaves(&here).into_iter().chain(leaves(&there)).collect();
        keys.into_iter()
            .map(|key| KeyDifference { here: written(&here, &key), there: written(&there, &key), key })
            .filter(|difference| difference.here != difference.there)
            .collect()
    }

    /// The keys of this configuration that `text`, which was resolved to it, does not state.
    pub(crate) fn unstated_keys(&self, text: &str) -> Vec<String> {
        let all = Table::try_from(self).expect("it serializes");
        let stated: Table = toml::from_str(text).expect("it was resolved");
        leaves(&all).into_iter().filter(|key| lookup(&stated, key).is_none()).collect()
    }
}

/// A configuration while files and overrides are being laid over it.
pub(super) struct Resolver {
    config: Config,
    table: Table,
}

impl Resolver {
    /// Starts from a configuration that has every key.
    pub(super) fn new(defaults: Config) -> Self {
        let table = Table::try_from(&defaults).expect("the defaults serialize");
        Self { config: defaults, table }
    }

    /// The configuration with everything that was laid over it.
    pub(super) fn finish(self) -> Config {
        self.config
    }

    /// Lays a parsed file over the configuration, key by key.
    pub(super) fn overlay(&mut self, file: &Table) -> Result<()> {
        self.overlay_section("", file)
    }

    fn overlay_section(&mut self, prefix: &str, section: &Table) -> Result<()> {
        let (kinds, others): (Vec<_>, Vec<_>) =
            section.iter().partition(|(name, _)| join(prefix, name) == LOSS_KIND);
        for (name, value) in kinds.into_iter().chain(others) {
            let key = join(prefix, name);
            match (lookup(&self.table, &key), value) {
                (None, _) => return Err(self.unknown(&key)),
                (Some(Value::Table(_)), Value::Table(inner)) => {
                    self.overlay_section(&key, inner)?;
                }
                (Some(_), _) => self.set_leaf(&key, value.clone())?,
            }
        }
        Ok(())
    }

    /// Applies one `key=value`. The key is a full dotted one or any unique end of one (`group_size`), and
    /// `loss` is short for `rl.loss.kind`; the value is TOML, or a string if it is not valid TOML.
    pub(super) fn set(&mut self, text: &str) -> Result<()> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(TrainingError::ConfigSyntax {
                origin: format!("override `{text}`"),
                problem: "expected `key=value`".into(),
            });
        };
        let (key, value) = (self.full_key(key.trim())?, value.trim());
        let parsed = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(value.into()));
        self.set_leaf(&key, parsed)
    }

    fn full_key(&self, key: &str) -> Result<String> {
        if key == "loss" || key == "rl.loss" {
            return Ok(LOSS_KIND.into());
        }
        if lookup(&self.table, key).is_some() {
            return Ok(key.into());
        }
        let end = format!(".{key}");
        let found: Vec<String> =
            leaves(&self.table).into_iter().filter(|full| full.ends_with(&end)).collect();
        match found.as_slice() {
            [] => Err(self.unknown(key)),
            [one] => Ok(one.clone()),
            several => Err(TrainingError::AmbiguousKey {
                key: key.into(),
                candidates: several.iter().map(|full| format!("`{full}`")).collect::<Vec<_>>().join(" or "),
            }),
        }
    }

    fn set_leaf(&mut self, key: &str, value: Value) -> Result<()> {
        let slot = lookup_mut(&mut self.table, key).expect("callers looked the key up");
        *slot = fit(slot, value).map_err(|problem| invalid(key, problem))?;
        if key == LOSS_KIND {
            self.take_loss_parameters()?;
        }
        self.config =
            self.table.clone().try_into().map_err(|e: toml::de::Error| invalid(key, refusal(e.message())))?;
        Ok(())
    }

    /// Gives `[rl.loss]` the parameters of its kind, and those of the kind before that both have and that differ from its
    /// defaults.
    fn take_loss_parameters(&mut self) -> Result<()> {
        let defaults = |kind| Table::try_from(LossConfig::of(kind)).expect("a loss serializes");
        let former = defaults(self.config.rl.loss.kind());
        let kind = lookup(&self.table, LOSS_KIND).expect("the section has a kind").clone();
        let kind: LossKind =
            kind.try_into().map_err(|e: toml::de::Error| invalid(LOSS_KIND, refusal(e.message())))?;
        let mut parameters = defaults(kind);
        let section = lookup_mut(&mut self.table, "rl.loss").expect("the configuration has the section");
        let before = section.as_table_mut().expect("it is a section");
        for (name, value) in &mut parameters {
            if let Some(kept) = before.remove(name).filter(|kept| former.get(name) != Some(kept)) {
                *value = kept;
            }
        }
        *before = parameters;
        Ok(())
    }

    fn unknown(&self, key: &str) -> TrainingError {
        let hint = match losses_with(key).as_slice() {
            [] => nearest(key, &names(&self.table))
                .map(|near| format!(" (did you mean `{near}`?)"))
                .unwrap_or_default(),
            losses => {
                let kind = self.config.rl.loss.kind();
                format!(" of the loss `{kind}`; it belongs to {}: set `{LOSS_KIND}` first", losses.join(", "))
            }
        };
        TrainingError::UnknownKey { key: key.into(), hint }
    }
}

/// The losses, in backticks, that have the parameter `key`, written alone or in full.
fn losses_with(key: &str) -> Vec<String> {
    let name = key.strip_prefix("rl.loss.").unwrap_or(key);
    let has = |kind: &LossKind| {
        Table::try_from(LossConfig::of(*kind)).expect("a loss serializes").contains_key(name)
    };
    LossKind::ALL.into_iter().filter(has).map(|kind| format!("`{kind}`")).collect()
}

fn invalid(key: &str, problem: String) -> TrainingError {
    TrainingError::InvalidValue { key: key.into(), problem }
}

/// The text after the key in an error: messages of this crate continue the sentence, serde's follow a colon.
fn refusal(message: &str) -> String {
    match message.starts_with("must be ") {
        true => message.into(),
        false => format!("was refused: {message}"),
    }
}

/// `new` converted to the type of `old`, or the reason why it does not fit.
fn fit(old: &Value, new: Value) -> Result<Value, String> {
    match (old, new) {
        (Value::Float(_), Value::Integer(n)) => Ok(Value::Float(n as f64)),
        (Value::String(_), Value::Integer(n)) => Ok(Value::String(n.to_string())),
        (Value::Table(_), _) => Err("is a section; set one of its keys".into()),
        (old, new) if old.same_type(&new) => Ok(new),
        (old, new) => Err(format!("must be {}, not `{new}`", kind(old))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "a list",
        Value::Datetime(_) | Value::Table(_) => "of another kind",
    }
}

fn join(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.into(),
        _ => format!("{prefix}.{name}"),
    }
}

fn lookup<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((section, rest)) => lookup(table.get(section)?.as_table()?, rest),
    }
}

fn lookup_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    match key.split_once('.') {
        None => table.get_mut(key),
        Some((section, rest)) => lookup_mut(table.get_mut(section)?.as_table_mut()?, rest),
    }
}

/// The full dotted keys of all values, in the table's order.
fn leaves(table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => {
                found.extend(leaves(inner).into_iter().map(|leaf| join(name, &leaf)));
            }
            _ => found.push(name.clone()),
        }
    }
    found
}

/// The full dotted keys of the sections, then of all values.
fn names(table: &Table) -> Vec<String> {
    let sections = table.iter().filter(|(_, value)| value.is_table());
    let mut names: Vec<String> = sections.map(|(name, _)| name.clone()).collect();
    names.extend(leaves(table));
    names
}

/// The key most like `wrong`, compared in full and by last name alone, if at most a third of it must change.
/// Ties go to the first in table order.
fn nearest<'a>(wrong: &str, keys: &'a [String]) -> Option<&'a String> {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let wrong_last = wrong.rsplit('.').next().unwrap_or(wrong);
    keys.iter()
        .map(|key| {
            let by_name = levenshtein(wrong_last, last(key));
            let in_full = levenshtein(wrong, key);
            // A right name in a wrong section is nearer than any misspelling elsewhere.
            (by_name, in_full, key)
        })
        .filter(|(by_name, ..)| *by_name <= wrong_last.chars().count().div_ceil(3))
        .min_by_key(|(by_name, in_full, _)| (*by_name, *in_full))
        .map(|(.., key)| key)
}
