//! `webshop shop-r1 map`: shop actions as Shop-R1's, and back.

use std::process::ExitCode;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use webshop_agent::shop_r1::{BuyNowAs, NextAction, WrittenAction};
use webshop_env::{Action, AvailableActions};

use crate::answer::answer;
use crate::lines;

/// What is read and written, for `--help`.
const LINES: &str = "Standard input holds a row a line, as a JSON object with one of
  webshop  an action of the shop's: `search[…]` or `click[…]`
  action   one of Shop-R1's: {\"type\", \"name\", \"text\"}
and with
  page     what can be done: {\"has_search_bar\", \"clickables\"}; needed behind `action`
  opts     {\"buy_now_as\": \"click\" or \"terminate\"}, if not a click
Each is answered by the same row with `mapped`: the action on the other side, `END` for leaving, or `INVALID` with the reason as `problem`. Behind `webshop` there is also `mapped_back`, if there is a page.";

/// Flags of `webshop shop-r1 map`.
#[derive(clap::Args)]
#[command(after_help = LINES)]
pub struct MapArgs {}

/// What is read of a row.
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

/// What there is instead of an action that cannot be.
const INVALID: &str = "INVALID";

/// Maps one row after the other.
pub fn run(MapArgs {}: MapArgs) -> Result<ExitCode> {
    lines::each_in_stdin(|mut row: Value| {
        map(&mut row)?;
        answer!("{row}")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn map(answered: &mut Value) -> Result<()> {
    let Row { webshop, action, page, opts: Options { buy_now_as } } = lines::fields(answered)?;
    match (webshop, action, page) {
        (Some(said), None, page) => {
            let Ok(action) = said.parse::<Action>();
            let Some(mapped) = NextAction::of(&action, buy_now_as) else {
                answered["mapped"] = INVALID.into();
                answered["problem"] = format!("`{said}` is neither `search[…]` nor `click[…]`").into();
                return Ok(());
            };
            answered["mapped"] = json!(mapped);
            if let Some(page) = page {
                answered["mapped_back"] = in_shop(&WrittenAction::from(&mapped), &page, buy_now_as).0.into();
            }
        }
        (None, Some(action), Some(page)) => {
            let (mapped, problem) = in_shop(&action, &page, buy_now_as);
            answered["mapped"] = mapped.into();
            if let Some(problem) = problem {
                answered["problem"] = problem.into();
            }
        }
        (None, Some(_), None) => bail!("there is no `page` to map `action` on"),
        (None, None, _) => bail!("there is neither `webshop` nor `action`"),
        (Some(_), Some(_), _) => bail!("there are both `webshop` and `action`; give one of them"),
    }
    Ok(())
}

/// What is said to the shop, and why it is invalid if it is.
fn in_shop(
    action: &WrittenAction,
    page: &AvailableActions,
    buy_now_as: BuyNowAs,
) -> (String, Option<String>) {
    match action.in_shop(page, buy_now_as) {
        Ok(done) => (done.to_string(), None),
        Err(unfit) => (INVALID.into(), Some(unfit.to_string())),
    }
}
