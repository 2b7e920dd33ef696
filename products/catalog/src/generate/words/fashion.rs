//! The department of fashion.

use super::options::{BAND, CLOTHES_SIZE, COLOR, INSEAM, PACK, PATTERN, SHOE_SIZE, WIDTH};
use super::{Department, Form, Kind, Pool};

static SHOE_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "waterproof",
        "non slip",
        "light weight",
        "quick drying",
        "fleece lined",
        "breathable",
        "hand stitched",
        "machine washable",
        "shock absorbing",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static SHOE_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "rubber sole", "rubber lining", "rubber heel", "rubber tongue",
        "leather sole", "leather lining", "leather heel", "leather tongue",
        "mesh sole", "mesh lining", "mesh heel", "mesh tongue",
        "foam sole", "foam lining", "foam heel", "foam tongue",
    ],
};

static CLOTHES_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "machine washable",
        "quick drying",
        "moisture wicking",
        "windproof",
        "slim fit",
        "loose fit",
        "wrinkle free",
        "fleece lined",
        "breathable",
        "water resistant",
        "light weight",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static CLOTHES_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "zipper pockets", "zipper closure", "zipper cuffs", "zipper waist",
        "button pockets", "button closure", "button cuffs", "button waist",
        "elastic pockets", "elastic closure", "elastic cuffs", "elastic waist",
        "drawstring pockets", "drawstring closure", "drawstring cuffs", "drawstring waist",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static EXTRA_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "mesh lining", "mesh edges", "mesh padding", "mesh seams",
        "velvet lining", "velvet edges", "velvet padding", "velvet seams",
        "cotton lining", "cotton edges", "cotton padding", "cotton seams",
        "rubber lining", "rubber edges", "rubber padding", "rubber seams",
    ],
};

static WEAR: Pool = Pool {
    form: Form::For,
    texts: &[
        "daily wear",
        "gym workout",
        "cold weather",
        "hot summer",
        "beach days",
        "long walks",
        "wide feet",
        "date night",
        "office wear",
    ],
};

static CLOTHES_WEAR: Pool = Pool {
    form: Form::For,
    texts: &[
        "daily wear",
        "gym workout",
        "cold weather",
        "hot summer",
        "beach days",
        "date night",
        "office wear",
        "tall people",
        "camping trips",
    ],
};

static FOLK: &[&str] = &["men's", "women's", "kids'"];

const SHOES: Kind = Kind {
    query: "",
    section: "shoes",
    dollars: (18, 120),
    audiences: FOLK,
    materials: &["leather", "suede", "canvas", "mesh"],
    pools: [&SHOE_QUALITIES, &SHOE_PARTS, &WEAR],
    groups: &[&SHOE_SIZE, &COLOR, &WIDTH],
    tails: &[],
};

const CLOTHES: Kind = Kind {
    section: "clothing",
    dollars: (12, 70),
    materials: &["cotton", "linen", "fleece", "denim", "bamboo"],
    pools: [&CLOTHES_QUALITIES, &CLOTHES_PARTS, &CLOTHES_WEAR],
    groups: &[&CLOTHES_SIZE, &COLOR, &PATTERN],
    ..SHOES
};

const EXTRA: Kind = Kind {
    section: "accessories",
    dollars: (8, 45),
    pools: [&CLOTHES_QUALITIES, &EXTRA_PARTS, &CLOTHES_WEAR],
    groups: &[&COLOR, &PATTERN, &PACK],
    tails: &["2 pack", "4 pack"],
    ..CLOTHES
};

pub(super) static FASHION: Department = Department {
    name: "fashion",
    root: "clothing, shoes & jewelry",
    kinds: &[
        Kind { query: "hiking boots", dollars: (35, 140), ..SHOES },
        Kind { query: "rain boots", materials: &["rubber", "canvas"], ..SHOES },
        Kind { query: "running shoes", ..SHOES },
        Kind { query: "slide sandals", ..SHOES },
        Kind { query: "house slippers", ..SHOES },
        Kind { query: "polo shirt", ..CLOTHES },
        Kind { query: "dress shirt", ..CLOTHES },
        Kind { query: "zip hoodie", ..CLOTHES },
        Kind { query: "rain jacket", dollars: (24, 110), materials: &["nylon", "mesh"], ..CLOTHES },
        Kind { query: "winter coat", dollars: (45, 220), materials: &["wool", "fleece", "nylon"], ..CLOTHES },
        Kind { query: "yoga pants", groups: &[&CLOTHES_SIZE, &COLOR, &INSEAM], ..CLOTHES },
        Kind { query: "cargo pants", groups: &[&CLOTHES_SIZE, &COLOR, &INSEAM], ..CLOTHES },
        Kind { query: "swim shorts", materials: &["nylon", "mesh"], ..CLOTHES },
        Kind { query: "summer dress", audiences: &["women's", "kids'"], ..CLOTHES },
        Kind { query: "wool socks", materials: &["merino", "alpaca"], ..EXTRA },
        Kind {
            query: "watch band",
            materials: &["leather", "nylon", "silicone"],
            groups: &[&BAND, &COLOR, &PATTERN],
            ..EXTRA
        },
    ],
    uses: &["a walk in town", "a weekend away", "school days", "the whole season", "a day on the road"],
    remarks: &[
        "please check the size chart",
        "soft on the skin all day",
        "looks good with almost anything",
        "colors may look different on your screen",
        "order one size up if in doubt",
    ],
};
