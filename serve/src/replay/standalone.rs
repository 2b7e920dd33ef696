//! Recorded episodes as one document, for who has no server: a file to keep, to send or to publish.
//!
//! It shows what `/replay` shows, by the same templates and styles: the list, and each step of each episode as a section
//! of which the fragment of the address chooses one, so that links work without scripts. The [script](SCRIPT) adds what
//! needs one: filters, arrow keys, and the pages of the shop in frames. The document fetches nothing, and its policy
//! forbids that.
//!
//! Pages are kept as inert `<template>`s and drawings once each, so that a file has some 6 kB a step.

use std::collections::BTreeMap;

use askama::Template;
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use webshop_agent::{Episode, EpisodeExt, FailureKind};
use webshop_lm::BpeTokenizer;
use webshop_products::Catalog;

use super::episode::{self, EpisodeView};
use super::list::{self, Filter, ListView};
use super::recordings::{Recording, Recordings};
use crate::site::assets::{ICON, STYLE};
use crate::{document, picture, site};

const HEADING: &str = "Recorded episodes";

/// The part of the script that a server's documents do not need.
const SCRIPT: &str = include_str!("../../assets/standalone.js");

#[derive(Template)]
#[template(path = "standalone.html")]
struct Standalone<'a> {
    style: &'static str,
    icon: PercentEncode<'static>,
    list: ListView<'a>,
    /// The last first, as in the list.
    episodes: Vec<Steps<'a>>,
    data: String,
    scripts: [&'static str; 2],
}

/// The steps of an episode.
struct Steps<'a> {
    number: usize,
    steps: Vec<EpisodeView<'a>>,
}

/// What the script works with.
#[derive(Serialize)]
struct Data<'a> {
    /// By number.
    episodes: Vec<Filtered<'a>>,
    /// By the numbers that stand for their addresses.
    pictures: Vec<String>,
}

/// What the filters ask of an episode.
#[derive(Serialize)]
struct Filtered<'a> {
    policy: &'a str,
    success: bool,
    failure: Option<FailureKind>,
    goal: u32,
    instruction: &'a str,
    reward: f64,
}

impl<'a> Filtered<'a> {
    fn new(episode: &'a Episode) -> Filtered<'a> {
        Filtered {
            policy: &episode.meta.policy,
            success: episode.is_success(),
            failure: FailureKind::of(episode),
            goal: episode.goal.0,
            instruction: &episode.meta.instruction,
            reward: episode.reward,
        }
    }
}

/// Drawings with their numbers.
#[derive(Default)]
struct Pictures(BTreeMap<String, usize>);

impl Pictures {
    /// A document with the numbers of its drawings in place of their addresses. Products of two shops may have the same
    /// address, so that the numbers are those of the drawings.
    fn numbered(&mut self, document: &str, catalog: &Catalog) -> String {
        picture::with_addresses(document, catalog, |drawing| {
            let n_known = self.0.len();
            self.0.entry(drawing).or_insert(n_known).to_string()
        })
    }

    /// The drawings by their numbers.
    fn into_list(self) -> Vec<String> {
        let mut list: Vec<(usize, String)> =
            self.0.into_iter().map(|(drawing, number)| (number, drawing)).collect();
        list.sort_unstable();
        list.into_iter().map(|(_, drawing)| drawing).collect()
    }
}

impl Recordings {
    /// The episodes as one HTML document that needs no server: the pages of `/replay`, with links between them.
    /// `tokenizer` gives texts to the tokens of completions that it spells as they are recorded.
    pub fn to_html(&self, tokenizer: Option<&BpeTokenizer>) -> String {
        let mut pictures = Pictures::default();
        let numbers = (0..self.len()).rev();
        let episodes = numbers.filter_map(|number| Some((number, self.get(number)?)));
        let episodes = episodes
            .map(|(number, recording)| Steps {
                number,
                steps: (0..=recording.episode.turns.len())
                    .map(|step| {
                        let place = super::place(self, number, "#", "#");
                        let page = page(recording, step, &mut pictures);
                        episode::view(recording, place, step, tokenizer, Some(page))
                    })
                    .collect(),
            })
            .collect();
        let place =
            list::Place { heading: HEADING.to_owned(), base: "#".to_owned(), limit: usize::MAX, back: None };
        let filtered = (0..self.len()).filter_map(|number| self.get(number));
        let filtered = filtered.map(|recording| Filtered::new(&recording.episode)).collect();
        let data = Data { episodes: filtered, pictures: pictures.into_list() };
        let data = serde_json::to_string(&data).expect("texts and numbers");
        document::text(&Standalone {
            style: STYLE,
            icon: utf8_percent_encode(ICON, NON_ALPHANUMERIC),
            list: list::view(place, self.newest_first(), Filter::default()),
            episodes,
            // A text may have the tag that ends a script.
            data: data.replace('<', "\\u003c"),
            scripts: [site::assets::SCRIPT, SCRIPT],
        })
    }
}

/// The inside of the body of the shop's page after `step` turns, with the numbers of its drawings.
fn page(recording: &Recording, step: usize, pictures: &mut Pictures) -> String {
    let document = super::page_after(recording, step);
    let body = document.split_once("<body>").and_then(|(_, rest)| rest.rsplit_once("</body>"));
    let (body, _) = body.expect("a document has a body");
    pictures.numbered(body.trim(), recording.shop.catalog())
}
