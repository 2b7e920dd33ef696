//! The department of groceries.

use super::options::PACK;
use super::tastes::{BAG, CANDY, DRINK, HEAT, ROAST, SAVORY, SPREAD, SWEET};
use super::{Department, Form, Kind, Pool};

static DIETS: Pool = Pool {
    form: Form::Is,
    texts: &[
        "gluten free",
        "sugar free",
        "dairy free",
        "nut free",
        "soy free",
        "low carb",
        "low sodium",
        "non gmo",
        "paleo approved",
        "certified organic",
        "plant based",
        "shelf stable",
        "ready to eat",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static CONTENTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "almond pieces", "almond coating", "almond filling", "almond powder",
        "cocoa pieces", "cocoa coating", "cocoa filling", "cocoa powder",
        "honey pieces", "honey coating", "honey filling", "honey powder",
        "cherry pieces", "cherry coating", "cherry filling", "cherry powder",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static DRINK_CONTENTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "lemon pulp", "lemon puree", "lemon extract", "lemon syrup",
        "ginger pulp", "ginger puree", "ginger extract", "ginger syrup",
        "cocoa pulp", "cocoa puree", "cocoa extract", "cocoa syrup",
        "berry pulp", "berry puree", "berry extract", "berry syrup",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static SAVORY_CONTENTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "pepper flakes", "pepper oil", "pepper paste", "pepper seeds",
        "onion flakes", "onion oil", "onion paste", "onion seeds",
        "garlic flakes", "garlic oil", "garlic paste", "garlic seeds",
        "sesame flakes", "sesame oil", "sesame paste", "sesame seeds",
    ],
};

static OCCASIONS: Pool = Pool {
    form: Form::For,
    texts: &[
        "gift baskets",
        "school lunch",
        "quick breakfast",
        "road trips",
        "birthday parties",
        "camping trips",
        "holiday baking",
        "movie night",
    ],
};

const SNACK: Kind = Kind {
    query: "",
    section: "snacks",
    dollars: (6, 38),
    audiences: &[],
    materials: &["oat", "almond", "quinoa", "honey", "coconut"],
    pools: [&DIETS, &CONTENTS, &OCCASIONS],
    groups: &[&SWEET, &BAG, &PACK],
    tails: &["4 oz", "8 oz", "6 pack", "10 pack"],
};

const BEVERAGE: Kind = Kind {
    section: "drinks",
    materials: &["ginger", "honey", "coconut", "oat"],
    pools: [&DIETS, &DRINK_CONTENTS, &OCCASIONS],
    groups: &[&DRINK, &BAG, &PACK],
    ..SNACK
};

const SALTY: Kind = Kind {
    pools: [&DIETS, &SAVORY_CONTENTS, &OCCASIONS],
    materials: &["corn", "rice", "lentil", "potato"],
    groups: &[&SAVORY, &BAG, &PACK],
    ..SNACK
};

const PANTRY: Kind = Kind { section: "pantry", ..SNACK };

pub(super) static GROCERY: Department = Department {
    name: "grocery",
    root: "grocery & gourmet food",
    kinds: &[
        Kind { query: "herbal tea", ..BEVERAGE },
        Kind { query: "ground coffee", groups: &[&ROAST, &BAG, &PACK], ..BEVERAGE },
        Kind { query: "coffee pods", groups: &[&ROAST, &PACK], ..BEVERAGE },
        Kind { query: "energy drink", ..BEVERAGE },
        Kind { query: "protein bars", ..SNACK },
        Kind { query: "granola bars", ..SNACK },
        Kind { query: "trail mix", ..SNACK },
        Kind { query: "potato chips", ..SALTY },
        Kind {
            query: "beef jerky",
            materials: &["smoked", "cured"],
            groups: &[&HEAT, &SAVORY, &BAG],
            ..SALTY
        },
        Kind { query: "rice crackers", ..SALTY },
        Kind { query: "dark chocolate", groups: &[&CANDY, &BAG, &PACK], ..SNACK },
        Kind { query: "gummy candy", groups: &[&CANDY, &BAG, &PACK], ..SNACK },
        Kind {
            query: "pasta sauce",
            section: "pantry",
            materials: &["tomato", "basil"],
            groups: &[&HEAT, &BAG, &PACK],
            ..SALTY
        },
        Kind {
            query: "hot sauce",
            section: "pantry",
            materials: &["chili", "tomato"],
            groups: &[&HEAT, &SAVORY, &PACK],
            ..SALTY
        },
        Kind { query: "peanut butter", groups: &[&SPREAD, &BAG, &PACK], ..PANTRY },
        Kind { query: "pancake mix", groups: &[&SWEET, &BAG, &PACK], ..PANTRY },
    ],
    uses: &[
        "a busy morning",
        "the office kitchen",
        "the whole family",
        "a day on the road",
        "a rainy sunday",
    ],
    remarks: &[
        "store in a cool place",
        "made in small batches and checked twice",
        "tastes best cold",
        "see the label for all details",
        "packed fresh every week",
    ],
};
