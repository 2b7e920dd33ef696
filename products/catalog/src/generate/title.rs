//! Titles: brand, series and model, traits, the kind, and a tail of whatever sellers add.

use super::coined;
use super::dice::Dice;
use super::family::{Family, Trait};
use super::words::{Form, prose};

/// The least words of a title, and the most, and in how many of 100 draws it has a further one.
const LEAST: usize = 7;
const MOST: usize = 30;
const FURTHER: usize = 88;

/// In how many of 100 titles a series or a model number follows the brand.
const SERIES: usize = 60;
const MODEL: usize = 50;

/// A title of [`LEAST`] to [`MOST`] words that names the traits in `shown`, in lower case.
pub(super) fn title(family: &Family, shown: &[Trait], dice: &mut Dice) -> String {
    let n_words = LEAST + 1 + dice.geometric(FURTHER, MOST - LEAST - 1);
    let mut head = vec![family.brand.clone()];
    if dice.chance(SERIES) {
        head.push(coined::word(dice));
    }
    if dice.chance(MODEL) {
        head.push(coined::model(dice));
    }
    head.extend(shown.iter().filter(|one| one.form == Form::Is).map(|one| one.text.to_owned()));
    head.extend(family.material.map(str::to_owned));
    head.push(family.query.clone());
    let mut parts = vec![head.join(" ")];
    let said = |one: &Trait| match one.form {
        Form::For => format!("for {}", one.text),
        Form::Is | Form::Has => format!("with {}", one.text),
    };
    parts.extend(shown.iter().filter(|one| one.form != Form::Is).map(said));
    let mut tails = dice.sample(&Tail::ALL, Tail::ALL.len());
    while count(&parts) < n_words {
        let Some(tail) = tails.pop() else { break };
        let part = tail.text(family, dice);
        if count(&parts) + part.split(' ').count() <= MOST {
            parts.push(part);
        }
    }
    parts.join(", ")
}

fn count(parts: &[String]) -> usize {
    parts.iter().map(|part| part.split(' ').count()).sum()
}

/// What follows the name of a product in a title.
#[derive(Clone, Copy)]
enum Tail {
    Series,
    Model,
    Design,
    Use,
    Extra,
    Color,
    Measure,
    Gift,
    Year,
    Places,
    Technology,
    Amount,
}

impl Tail {
    const ALL: [Self; 12] = [
        Self::Series,
        Self::Model,
        Self::Design,
        Self::Use,
        Self::Extra,
        Self::Color,
        Self::Measure,
        Self::Gift,
        Self::Year,
        Self::Places,
        Self::Technology,
        Self::Amount,
    ];

    fn text(self, family: &Family, dice: &mut Dice) -> String {
        match self {
            Self::Series => format!("{} {}", coined::word(dice), dice.pick(&prose::SERIES)),
            Self::Model => format!("model {}", coined::model(dice)),
            Self::Design => format!("{} {}", dice.pick(&prose::LOOKS), dice.pick(&prose::DESIGNS)),
            Self::Use => format!("for {}", dice.pick(family.department.uses)),
            Self::Extra => format!("with {}", dice.pick(&prose::EXTRAS)),
            Self::Color => format!("{} {}", coined::word(dice), dice.pick(&prose::HUES)),
            Self::Measure => format!("{} x {} inches", dice.between(2, 60), dice.between(2, 60)),
            Self::Gift => format!("a gift for {}s", dice.pick(&prose::PERSONS)),
            Self::Year => format!("{} {}", dice.between(2016, 2026), dice.pick(&prose::EDITIONS)),
            Self::Places => format!("{} and {}", dice.pick(&prose::PLACES), dice.pick(&prose::SITES)),
            Self::Technology => format!("{} {}", coined::word(dice), dice.pick(&prose::TECHNOLOGIES)),
            Self::Amount => match family.kind.tails {
                [] => format!("{} count", dice.between(1, 48)),
                tails => dice.pick(tails).to_owned(),
            },
        }
    }
}
