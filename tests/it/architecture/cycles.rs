//! No files of a crate import each other in a cycle.
//!
//! An arrow goes from a file to the file whose item a path names, behind all `use` declarations that pass it on. A module
//! and the files below it are one thing in two ways: a file may take items of the module that it is part of, and the module
//! may call its parts. Both at once are no cycle; each together with a third file is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{Token, closing, production_files, production_tokens};
use super::{CRATES, root};

type Module = Vec<String>;

/// What one file says of others.
#[derive(Default)]
struct Links {
    /// Names that stand for paths from the crate's root.
    aliases: BTreeMap<String, Module>,
    /// Modules of which all names are taken over.
    globs: Vec<Module>,
    /// Every path through `crate::`, `super::` or `self::`, or through a module below, from the crate's root. What is
    /// only passed on is not among them.
    paths: Vec<Module>,
}

/// Which arrows between a module and the files below it count.
#[derive(Clone, Copy)]
enum Kin {
    /// Those from a file to the module that it is part of.
    Up,
    /// Those from a module to its parts.
    Down,
}

struct Crate {
    files: BTreeMap<Module, Links>,
}

/// The module that a file below `src` is.
fn module_of(file: &Path) -> Module {
    let mut names: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    names.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    names
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let links = |file: PathBuf| {
            let module = module_of(file.strip_prefix(folder.join("src")).expect("below"));
            let links = links(&production_tokens(&file), &module);
            (module, links)
        };
        Self { files: production_files(folder).into_iter().map(links).collect() }
    }

    /// The file that has the item of this path; `None` if it leads nowhere in this crate.
    fn owner(&self, path: &[String], seen: &mut BTreeSet<Module>) -> Option<Module> {
        let n_names = (0..=path.len()).rev().find(|&n| self.files.contains_key(&path[..n]))?;
        let (module, rest) = path.split_at(n_names);
        let Some((name, rest)) = rest.split_first() else { return Some(module.to_vec()) };
        // A name of another crate may stand for a path that begins with itself.
        if !seen.insert(path.to_vec()) || seen.len() > 20 {
            return None;
        }
        let links = &self.files[module];
        if let Some(target) = links.aliases.get(name) {
            return self.owner(&[target, rest].concat(), seen);
        }
        let mut globs = links.globs.iter();
        let from_glob = globs.find_map(|glob| {
            let target = [&glob[..], std::slice::from_ref(name)].concat();
            let named = self.files.contains_key(&target)
                || self.files.get(glob).is_some_and(|links| links.aliases.contains_key(name));
            named.then(|| self.owner(&[&target[..], rest].concat(), seen)).flatten()
        });
        Some(from_glob.unwrap_or_else(|| module.to_vec()))
    }

    /// The arrows of each file.
    fn arrows(&self, kin: Kin) -> BTreeMap<Module, BTreeSet<Module>> {
        let counts = |from: &Module, to: &Module| match kin {
            Kin::Up => !to.starts_with(from),
            Kin::Down => !from.starts_with(to),
        };
        let arrows = |(module, links): (&Module, &Links)| {
            let owners = links.paths.iter().filter_map(|path| self.owner(path, &mut BTreeSet::new()));
            (module.clone(), owners.filter(|owner| counts(module, owner)).collect())
        };
        self.files.iter().map(arrows).collect()
    }
}

/// The links of a file.
fn links(tokens: &[Token], module: &Module) -> Links {
    let mut links = Links::default();
    // Modules within the file, each with the place where it ends.
    let mut inner: Vec<(String, usize)> = Vec::new();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut at = 0;
    while at < tokens.len() {
        inner.retain(|(_, end)| at < *end);
        let here: Module = module.iter().cloned().chain(inner.iter().map(|(name, _)| name.clone())).collect();
        let before = if at == 0 { "" } else { text(at - 1) };
        match text(at) {
            "mod" if text(at + 2) == "{" => inner.push((text(at + 1).to_owned(), closing(tokens, at + 2))),
            // Not the captures of a type, `use<>`.
            "use" if text(at + 1) != "<" => {
                let tree = Tree { tokens, here: &here, passes_on: ["pub", ")"].contains(&before) };
                at += 1;
                tree.read(&mut at, Vec::new(), &mut links);
            }
            _ if text(at + 1) == "::" && !["::", "in"].contains(&before) => {
                links.paths.extend(path_at(tokens, at, &here));
            }
            _ => (),
        }
        at += 1;
    }
    links
}

/// The path that begins here.
fn path_at(tokens: &[Token], mut at: usize, here: &Module) -> Option<Module> {
    let mut path = Vec::new();
    loop {
        path.push(tokens[at].text.clone());
        let next = tokens.get(at + 2).filter(|_| tokens[at + 1].text == "::");
        let Some(_) = next.filter(|next| next.text.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        else {
            return from_root(&path, here);
        };
        at += 2;
    }
}

/// A path as it is from the crate's root, where a path without an anchor is taken for that of a module below: one of
/// another crate leads nowhere. `None` if it leads out of the crate.
fn from_root(path: &[String], here: &Module) -> Option<Module> {
    let n_super = path.iter().take_while(|name| *name == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([here, &path[1..]].concat()),
        "super" => Some([here.get(..here.len().checked_sub(n_super)?)?, &path[n_super..]].concat()),
        _ => Some([here, path].concat()),
    }
}

/// A declaration of `use`.
struct Tree<'a> {
    tokens: &'a [Token],
    here: &'a Module,
    /// It is public, and brings names for others.
    passes_on: bool,
}

impl Tree<'_> {
    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or(";", |token| &token.text)
    }

    /// Reads the tree from `at` on, behind the names `prefix`.
    fn read(&self, at: &mut usize, mut prefix: Vec<String>, links: &mut Links) {
        loop {
            match self.text(*at) {
                ";" | "}" | "," => return,
                "::" => *at += 1,
                "*" => {
                    links.globs.extend(from_root(&prefix, self.here));
                    self.name(&prefix, None, links);
                    *at += 1;
                }
                "{" => {
                    let end = closing(self.tokens, *at);
                    *at += 1;
                    while *at < end - 1 {
                        self.read(at, prefix.clone(), links);
                        *at += usize::from(self.text(*at) == ",");
                    }
                    *at = end;
                }
                name => {
                    prefix.push(name.to_owned());
                    *at += 1;
                    if [";", "}", ",", "as"].contains(&self.text(*at)) {
                        prefix.pop_if(|last| last == "self" || last == "_");
                        let is_renamed = self.text(*at) == "as";
                        let alias = if is_renamed {
                            self.text(*at + 1)
                        } else {
                            prefix.last().map_or("", |name| name)
                        };
                        self.name(&prefix, Some(alias.to_owned()), links);
                        *at += if is_renamed { 2 } else { 0 };
                    }
                }
            }
        }
    }

    /// Adds one path that is brought.
    fn name(&self, path: &[String], alias: Option<String>, links: &mut Links) {
        let Some(target) = from_root(path, self.here) else { return };
        if !self.passes_on {
            links.paths.push(target.clone());
        }
        links.aliases.extend(alias.map(|alias| (alias, target)));
    }
}

/// A cycle through `start`, if there is one: the shortest way back to it.
fn cycle(arrows: &BTreeMap<Module, BTreeSet<Module>>, start: &Module) -> Option<Vec<Module>> {
    let (mut ways, mut seen) = (vec![vec![start.clone()]], BTreeSet::new());
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in &arrows[way.last().expect("not empty")] {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push([&way[..], std::slice::from_ref(next)].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

fn shown(cycle: &[Module]) -> String {
    let name = |module: &Module| if module.is_empty() { "crate".to_owned() } else { module.join("::") };
    cycle.iter().map(name).collect::<Vec<_>>().join(" → ")
}

/// Cycles of a crate, each once: that of its first file in the order of names.
fn cycles(krate: &Crate) -> Vec<String> {
    let mut found = BTreeSet::new();
    for kin in [Kin::Up, Kin::Down] {
        let arrows = krate.arrows(kin);
        let cycles = arrows.keys().filter_map(|start| cycle(&arrows, start));
        let firsts = cycles.filter(|cycle| cycle.iter().all(|module| *module >= cycle[0]));
        found.extend(firsts.map(|cycle| shown(&cycle)));
    }
    found.into_iter().collect()
}

#[test]
fn no_files_import_each_other_in_a_cycle() {
    let mut found = Vec::new();
    for krate in CRATES {
        let cycles = cycles(&Crate::read(&root().join(krate.folder)));
        found.extend(cycles.into_iter().map(|cycle| format!("{}: {cycle}", krate.name)));
    }
    assert!(found.is_empty(), "{} cycles:\n{}", found.len(), found.join("\n"));
}

#[test]
fn cycles_are_found_behind_what_passes_names_on() {
    let krate = |sources: &[(&str, &str)]| {
        let file = |(path, source): &(&str, &str)| {
            let module = module_of(Path::new(path));
            let links = links(&super::source::tokens(source), &module);
            (module, links)
        };
        cycles(&Crate { files: sources.iter().map(file).collect() })
    };
    let facade = ("lib.rs", "mod a; mod b; pub use a::{One, Other as Third}; pub use b::*;");
    let a = |uses: &'static str| ("a.rs", uses);
    let b = ("b/mod.rs", "mod c; pub use c::Two; use super::Third;");
    let c = ("b/c.rs", "pub struct Two;");
    assert_eq!(krate(&[facade, a("use std::fs; fn f() { crate::b::g() }"), b, c]), ["a → b"]);
    // What `a` takes is in `c`, which takes nothing.
    assert_eq!(krate(&[facade, a("use crate::{b::Two};"), b, c]), [""; 0]);
    let c = ("b/c.rs", "use super::super::One; fn f(_: One) {}");
    assert_eq!(krate(&[facade, a("use crate::b::Two as T;"), b, c]), ["a → b::c"]);
}
