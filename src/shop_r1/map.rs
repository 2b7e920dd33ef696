//! `webshop shop-r1 map`: translates between actions of the shop and Shop-R1 actions.

use std::process::ExitCode;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use webshop_agent::next_action::{BuyNowAs, NextAction, WrittenAction};
use webshop_env::{Action, AvailableActions};
use webshop_products::read_fields;

use crate::jsonl;
use crate::output::outln;

/// Input and output formats, for `--help`.
const FORMAT: &str = "Reads one JSON object per line of standard input, with one of
  webshop  an action of the shop: `search[…]` or `click[…]`
  action   a Shop-R1 action: {\"type\", \"name\", \"text\"}
and with
  page     the available actions: {\"has_search_bar\", \"clickables\"}; required with `action`
  opts     {\"buy_now_as\": \"terminate\"} if `terminate` stands for a purchase; by default a click does
Prints the same object with `mapped`: the translated action, `END` for `terminate` without a purchase, or \
`INVALID` with the reason in `problem`. With `webshop` and `page`, `mapped_back` is the translation back.";

/// Flags of `webshop shop-r1 map`.
#[derive(clap::Args)]
#[command(after_help = FORMAT)]
pub(crate) struct MapArgs {}

/// An input line.
#[derive(Deserialize)]
struct Row {
    webshop: Option<String>,
    action: Option<WrittenAction>,
    page: Option<AvailableActions>,
    #[serde(default)]
    opts: Options,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    buy_now_as: BuyNowAs,
}

/// Value of `mapped` if there is no translation.
const INVALID: &str = "INVALID";

/// Translates one line after the other.
pub(crate) fn run(MapArgs {}: MapArgs) -> Result<ExitCode> {
    jsonl::for_each_in_stdin(|mut row: Value| {
        map(&mut row)?;
        outln!("{row}")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn map(object: &mut Value) -> Result<()> {
    let Row { webshop, action, page, opts: Options { buy_now_as } } = read_fields(&*object)?;
    match (webshop, action, page) {
        (Some(text), None, page) => {
            let Ok(action) = text.parse::<Action>();
            let Some(mapped) = NextAction::of(&action, buy_now_as) else {
                object["mapped"] = INVALID.into();
                object["problem"] = format!("`{text}` is neither `search[…]` nor `click[…]`").into();
                return Ok(());
            };
            object["mapped"] = json!(mapped);
            if let Some(page) = page {
                object["mapped_back"] = in_shop(&WrittenAction::from(&mapped), &page, buy_now_as).0.into();
            }
        }
        (None, Some(action), Some(page)) => {
            let (mapped, problem) = in_shop(&action, &page, buy_now_as);
            object["mapped"] = mapped.into();
            if let Some(problem) = problem {
                object["problem"] = problem.into();
            }
        }
        (None, Some(_), None) => bail!("`action` needs `page`"),
        (None, None, _) => bail!("give `webshop` or `action`"),
        (Some(_), Some(_), _) => bail!("give only one of `webshop` and `action`"),
    }
    Ok(())
}

/// The shop's action, or `INVALID` and the reason.
fn in_shop(
    action: &WrittenAction,
    page: &AvailableActions,
    buy_now_as: BuyNowAs,
) -> (String, Option<String>) {
    match action.in_shop(page, buy_now_as) {
        Ok(mapped) => (mapped.to_string(), None),
        Err(problem) => (INVALID.into(), Some(problem.to_string())),
    }
}
