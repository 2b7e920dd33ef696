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

static INGREDIENTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "vitamin c",
        "hyaluronic acid",
        "aloe vera",
        "tea tree",
        "coconut oil",
        "shea butter",
        "green tea",
        "rose water",
        "sea minerals",
        "natural ingredients",
        "manuka honey",
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

static TOOL_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "bamboo handle",
        "wooden handle",
        "soft bristles",
        "storage case",
        "rubber grip",
        "round tips",
        "metal hook",
        "travel cap",
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

const HAIR_CARE: Kind = Kind {
    section: "hair care",
    pools: [&FORMULAS, &INGREDIENTS, &HAIR],
    ..CARE
};

const MAKEUP: Kind = Kind {
    section: "makeup",
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
    pools: [&TOOL_QUALITIES, &TOOL_PARTS, &SKIN],
    groups: &[&BRISTLES, &TRAVEL_SIZE, &PACK],
    tails: &["2 pack", "4 pack"],
    ..CARE
};

pub(super) static BEAUTY: Department = Department {
    name: "beauty",
    root: "beauty & personal care",
    kinds: &[
        Kind {
            query: "face cream",
            section: "skin care",
            ..CARE
        },
        Kind {
            query: "eye cream",
            section: "skin care",
            ..CARE
        },
        Kind {
            query: "hand cream",
            section: "skin care",
            ..CARE
        },
        Kind {
            query: "body lotion",
            section: "skin care",
            ..CARE
        },
        Kind {
            query: "face serum",
            section: "skin care",
            dollars: (12, 68),
            ..CARE
        },
        Kind {
            query: "face mask",
            section: "skin care",
            ..CARE
        },
        Kind {
            query: "body wash",
            section: "bath",
            ..CARE
        },
        Kind {
            query: "bath bombs",
            section: "bath",
            dollars: (8, 30),
            ..CARE
        },
        Kind {
            query: "shampoo bar",
            ..HAIR_CARE
        },
        Kind {
            query: "hair conditioner",
            ..HAIR_CARE
        },
        Kind {
            query: "hair mask",
            ..HAIR_CARE
        },
        Kind {
            query: "lip balm",
            ..MAKEUP
        },
        Kind {
            query: "lipstick set",
            ..MAKEUP
        },
        Kind {
            query: "nail polish",
            ..MAKEUP
        },
        Kind {
            query: "hair brush",
            pools: [&TOOL_QUALITIES, &TOOL_PARTS, &HAIR],
            ..TOOL
        },
        Kind {
            query: "makeup brushes",
            ..TOOL
        },
    ],
    uses: &[
        "your morning routine",
        "a quiet evening",
        "the gym bag",
        "a day at home",
        "your travel bag",
    ],
    remarks: &[
        "a little goes a long way",
        "made in small batches and checked by hand",
        "store in a cool place",
        "not tested on animals",
        "see the label for all details",
    ],
};
