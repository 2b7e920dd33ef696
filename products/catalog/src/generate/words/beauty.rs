//! The department of beauty.

use super::options::{BRISTLES, GLOSS, PACK, SCENT, SHADE, TRAVEL_SIZE, VOLUME};
use super::{Department, Form, Kind, Pool};

static FORMULAS: Pool = Pool {
    form: Form::Is,
    texts: &[
        "cruelty free",
        "paraben free",
        "alcohol free",
        "oil free",
        "non greasy",
        "long lasting",
        "water resistant",
        "plant based",
        "fast absorbing",
        "clinically tested",
        "hand poured",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static INGREDIENTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "coconut oil", "coconut water", "coconut extract", "coconut butter",
        "rose oil", "rose water", "rose extract", "rose butter",
        "aloe oil", "aloe water", "aloe extract", "aloe butter",
        "honey oil", "honey water", "honey extract", "honey butter",
    ],
};

static SKIN: Pool = Pool {
    form: Form::For,
    texts: &[
        "sensitive skin",
        "dry skin",
        "oily skin",
        "mature skin",
        "dark circles",
        "fine lines",
        "dead skin",
        "daily use",
        "cracked heels",
    ],
};

static HAIR: Pool = Pool {
    form: Form::For,
    texts: &[
        "dry hair",
        "curly hair",
        "damaged hair",
        "thin hair",
        "colored hair",
        "hair growth",
        "split ends",
        "oily scalp",
        "daily use",
    ],
};

static LOOKS: Pool = Pool {
    form: Form::For,
    texts: &[
        "date night",
        "office wear",
        "daily use",
        "birthday parties",
        "sensitive skin",
        "hot summer",
        "wedding day",
        "night shifts",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static TOOL_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "bamboo handle", "bamboo grip", "bamboo tips", "bamboo base",
        "rubber handle", "rubber grip", "rubber tips", "rubber base",
        "silicone handle", "silicone grip", "silicone tips", "silicone base",
        "metal handle", "metal grip", "metal tips", "metal base",
    ],
};

static TOOL_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "easy to clean",
        "easy to use",
        "easy to carry",
        "double sided",
        "light weight",
        "eco friendly",
        "anti static",
        "hand made",
    ],
};

const CARE: Kind = Kind {
    query: "",
    section: "",
    dollars: (7, 48),
    audiences: &[],
    materials: &["oat", "charcoal", "honey", "cucumber", "almond", "clay"],
    pools: [&FORMULAS, &INGREDIENTS, &SKIN],
    groups: &[&SCENT, &VOLUME, &PACK],
    tails: &["2 oz", "4 oz", "100 ml", "2 pack"],
};

const HAIR_CARE: Kind = Kind { section: "hair care", pools: [&FORMULAS, &INGREDIENTS, &HAIR], ..CARE };

const MAKEUP: Kind = Kind {
    section: "makeup",
    pools: [&FORMULAS, &INGREDIENTS, &LOOKS],
    dollars: (6, 32),
    materials: &["matte", "velvet", "satin", "mineral"],
    groups: &[&SHADE, &GLOSS, &PACK],
    tails: &["2 pack", "4 pack"],
    ..CARE
};

const TOOL: Kind = Kind {
    section: "tools",
    dollars: (6, 36),
    materials: &["bamboo", "wooden", "silicone", "ceramic"],
    pools: [&TOOL_QUALITIES, &TOOL_PARTS, &LOOKS],
    groups: &[&BRISTLES, &TRAVEL_SIZE, &PACK],
    tails: &["2 pack", "4 pack"],
    ..CARE
};

pub(super) static BEAUTY: Department = Department {
    name: "beauty",
    root: "beauty & personal care",
    kinds: &[
        Kind { query: "face cream", section: "skin care", ..CARE },
        Kind { query: "eye cream", section: "skin care", ..CARE },
        Kind { query: "hand cream", section: "skin care", ..CARE },
        Kind { query: "body lotion", section: "skin care", ..CARE },
        Kind { query: "face serum", section: "skin care", dollars: (12, 68), ..CARE },
        Kind { query: "face mask", section: "skin care", ..CARE },
        Kind { query: "body wash", section: "bath", ..CARE },
        Kind { query: "bath bombs", section: "bath", dollars: (8, 30), ..CARE },
        Kind { query: "shampoo bar", ..HAIR_CARE },
        Kind { query: "hair conditioner", ..HAIR_CARE },
        Kind { query: "hair mask", ..HAIR_CARE },
        Kind { query: "lip balm", ..MAKEUP },
        Kind { query: "lipstick set", ..MAKEUP },
        Kind { query: "nail polish", ..MAKEUP },
        Kind { query: "hair brush", pools: [&TOOL_QUALITIES, &TOOL_PARTS, &HAIR], ..TOOL },
        Kind { query: "makeup brushes", ..TOOL },
    ],
    uses: &["your morning routine", "a quiet evening", "the gym bag", "a day at home", "your travel bag"],
    remarks: &[
        "a little goes a long way",
        "made in small batches and checked twice",
        "store in a cool place",
        "not tested on animals",
        "see the label for all details",
    ],
};
