//! The department of groceries.

use super::options::{BAG, CANDY, DRINK, HEAT, PACK, ROAST, SAVORY, SPREAD, SWEET};
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
        "keto friendly",
        "certified organic",
        "plant based",
        "shelf stable",
        "ready to eat",
    ],
};

static CONTENTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "sea salt",
        "whole grain",
        "natural flavors",
        "high protein",
        "real fruit",
        "simple ingredients",
        "resealable bag",
        "added calcium",
        "cane sugar",
        "extra fiber",
        "vitamin c",
    ],
};

static DRINK_CONTENTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "natural flavors",
        "real fruit",
        "simple ingredients",
        "added calcium",
        "cane sugar",
        "extra caffeine",
        "vitamin c",
        "resealable bag",
        "rich aroma",
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

const PANTRY: Kind = Kind {
    section: "pantry",
    groups: &[&SAVORY, &BAG, &PACK],
    ..SNACK
};

pub(super) static GROCERY: Department = Department {
    name: "grocery",
    root: "grocery & gourmet food",
    kinds: &[
        Kind {
            query: "herbal tea",
            ..BEVERAGE
        },
        Kind {
            query: "ground coffee",
            groups: &[&ROAST, &BAG, &PACK],
            ..BEVERAGE
        },
        Kind {
            query: "coffee pods",
            groups: &[&ROAST, &PACK],
            ..BEVERAGE
        },
        Kind {
            query: "energy drink",
            ..BEVERAGE
        },
        Kind {
            query: "protein bars",
            ..SNACK
        },
        Kind {
            query: "granola bars",
            ..SNACK
        },
        Kind {
            query: "trail mix",
            ..SNACK
        },
        Kind {
            query: "potato chips",
            groups: &[&SAVORY, &BAG, &PACK],
            ..SNACK
        },
        Kind {
            query: "beef jerky",
            groups: &[&HEAT, &SAVORY, &BAG],
            ..SNACK
        },
        Kind {
            query: "rice crackers",
            groups: &[&SAVORY, &BAG, &PACK],
            ..SNACK
        },
        Kind {
            query: "dark chocolate",
            groups: &[&CANDY, &BAG, &PACK],
            ..SNACK
        },
        Kind {
            query: "gummy candy",
            groups: &[&CANDY, &BAG, &PACK],
            ..SNACK
        },
        Kind {
            query: "pasta sauce",
            groups: &[&HEAT, &BAG, &PACK],
            ..PANTRY
        },
        Kind {
            query: "hot sauce",
            groups: &[&HEAT, &SAVORY, &PACK],
            ..PANTRY
        },
        Kind {
            query: "peanut butter",
            groups: &[&SPREAD, &BAG, &PACK],
            ..PANTRY
        },
        Kind {
            query: "pancake mix",
            groups: &[&SWEET, &BAG, &PACK],
            ..PANTRY
        },
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
        "made in small batches and checked by hand",
        "tastes best cold",
        "see the label for all details",
        "packed fresh every week",
    ],
};
