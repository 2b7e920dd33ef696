//! The department of home and garden.

use super::options::{BED, BULB, COLOR, FINISH, PACK, PATTERN, POT, RUG, SHAPE, WINDOW};
use super::{Department, Form, Kind, Pool};

static TEXTILE_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "machine washable",
        "fade resistant",
        "stain resistant",
        "super soft",
        "double sided",
        "quick drying",
        "hand made",
        "eco friendly",
        "easy to clean",
        "pet friendly",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static TEXTILE_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "cotton trim", "cotton lining", "cotton edges", "cotton backing",
        "satin trim", "satin lining", "satin edges", "satin backing",
        "fleece trim", "fleece lining", "fleece edges", "fleece backing",
        "rope trim", "rope lining", "rope edges", "rope backing",
    ],
};

static FURNITURE_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "easy to assemble",
        "space saving",
        "heavy duty",
        "light weight",
        "eco friendly",
        "scratch resistant",
        "hand made",
        "fully adjustable",
        "easy to clean",
        "wall mounted",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static FURNITURE_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "steel frame", "steel legs", "steel shelf", "steel handles",
        "glass frame", "glass legs", "glass shelf", "glass handles",
        "rope frame", "rope legs", "rope shelf", "rope handles",
        "cork frame", "cork legs", "cork shelf", "cork handles",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static VESSEL_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "rope handles", "rope base", "rope lid", "rope lining",
        "cork handles", "cork base", "cork lid", "cork lining",
        "linen handles", "linen base", "linen lid", "linen lining",
        "steel handles", "steel base", "steel lid", "steel lining",
    ],
};

static LIGHT_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "energy efficient",
        "easy to install",
        "battery powered",
        "water resistant",
        "fully adjustable",
        "long lasting",
        "hand made",
        "space saving",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static LIGHT_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "brass shade", "brass base", "brass stand", "brass chain",
        "linen shade", "linen base", "linen stand", "linen chain",
        "glass shade", "glass base", "glass stand", "glass chain",
        "steel shade", "steel base", "steel stand", "steel chain",
    ],
};

static ROOMS: Pool = Pool {
    form: Form::For,
    texts: &[
        "living room",
        "dining room",
        "guest room",
        "kids room",
        "home office",
        "front porch",
        "small spaces",
        "beach house",
    ],
};

const TEXTILE: Kind = Kind {
    query: "",
    section: "bedding",
    dollars: (10, 65),
    audiences: &[],
    materials: &["cotton", "linen", "velvet", "bamboo", "fleece"],
    pools: [&TEXTILE_QUALITIES, &TEXTILE_PARTS, &ROOMS],
    groups: &[&COLOR, &PATTERN, &PACK],
    tails: &["2 pack", "4 pack"],
};

const FURNITURE: Kind = Kind {
    section: "furniture",
    dollars: (45, 380),
    materials: &["oak", "walnut", "pine", "rattan"],
    pools: [&FURNITURE_QUALITIES, &FURNITURE_PARTS, &ROOMS],
    groups: &[&FINISH, &SHAPE],
    tails: &["2 pack"],
    ..TEXTILE
};

const LIGHT: Kind = Kind {
    section: "lighting",
    dollars: (12, 90),
    materials: &["brass", "ceramic", "wooden", "glass"],
    pools: [&LIGHT_QUALITIES, &LIGHT_PARTS, &ROOMS],
    groups: &[&BULB, &FINISH, &PACK],
    tails: &["2 pack"],
    ..TEXTILE
};

pub(super) static GARDEN: Department = Department {
    name: "garden",
    root: "home & garden",
    kinds: &[
        Kind { query: "throw pillow", ..TEXTILE },
        Kind { query: "throw blanket", groups: &[&COLOR, &PATTERN, &BED], ..TEXTILE },
        Kind { query: "bed sheets", groups: &[&BED, &COLOR, &PATTERN], ..TEXTILE },
        Kind { query: "duvet cover", groups: &[&BED, &COLOR, &PATTERN], ..TEXTILE },
        Kind { query: "bath towels", section: "bath", ..TEXTILE },
        Kind { query: "shower curtain", section: "bath", groups: &[&COLOR, &PATTERN, &WINDOW], ..TEXTILE },
        Kind { query: "window curtains", section: "decor", groups: &[&WINDOW, &COLOR, &PATTERN], ..TEXTILE },
        Kind {
            query: "area rug",
            section: "decor",
            dollars: (35, 240),
            groups: &[&RUG, &COLOR, &PATTERN],
            ..TEXTILE
        },
        Kind {
            query: "wall clock",
            section: "decor",
            dollars: (14, 60),
            groups: &[&FINISH, &SHAPE],
            ..LIGHT
        },
        Kind { query: "table lamp", ..LIGHT },
        Kind { query: "string lights", groups: &[&BULB, &PACK], ..LIGHT },
        Kind { query: "coffee table", ..FURNITURE },
        Kind { query: "office chair", groups: &[&COLOR, &FINISH], ..FURNITURE },
        Kind { query: "book shelf", ..FURNITURE },
        Kind {
            query: "storage baskets",
            pools: [&FURNITURE_QUALITIES, &VESSEL_PARTS, &ROOMS],
            section: "decor",
            dollars: (14, 55),
            groups: &[&COLOR, &SHAPE, &PACK],
            ..FURNITURE
        },
        Kind {
            query: "plant pots",
            pools: [&FURNITURE_QUALITIES, &VESSEL_PARTS, &ROOMS],
            section: "decor",
            dollars: (9, 48),
            groups: &[&POT, &COLOR, &SHAPE],
            ..FURNITURE
        },
    ],
    uses: &["a cozy corner", "the whole family", "a fresh new look", "a quiet evening", "a new apartment"],
    remarks: &[
        "wipe with a damp cloth",
        "colors may look different on your screen",
        "all screws and tools included",
        "measure your space before you buy",
        "goes well with any style",
    ],
};
