//! The department of electronics.

use super::options::{COLOR, CONNECTOR, DEVICE, LAPTOP, LENGTH, PACK, PATTERN, SHELL, SWITCH};
use super::{Department, Form, Kind, Pool};

static QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "fast charging",
        "high speed",
        "heavy duty",
        "water resistant",
        "plug and play",
        "ultra slim",
        "hands free",
        "easy to install",
        "light weight",
        "dust proof",
        "energy efficient",
    ],
};

static SOUND_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "noise cancelling",
        "high definition",
        "low latency",
        "hands free",
        "water resistant",
        "light weight",
        "battery powered",
        "easy to use",
        "fast charging",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static SOUND_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "metal cable", "metal grille", "metal pads", "metal clip",
        "nylon cable", "nylon grille", "nylon pads", "nylon clip",
        "foam cable", "foam grille", "foam pads", "foam clip",
        "rubber cable", "rubber grille", "rubber pads", "rubber clip",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "metal plugs", "metal cord", "metal shell", "metal feet",
        "nylon plugs", "nylon cord", "nylon shell", "nylon feet",
        "rubber plugs", "rubber cord", "rubber shell", "rubber feet",
        "ceramic plugs", "ceramic cord", "ceramic shell", "ceramic feet",
    ],
};

static COVER_QUALITIES: Pool = Pool {
    form: Form::Is,
    texts: &[
        "shock proof",
        "scratch resistant",
        "ultra slim",
        "heavy duty",
        "light weight",
        "dust proof",
        "easy to install",
        "case friendly",
        "non slip",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static COVER_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "magnetic mount", "magnetic stand", "magnetic holder", "magnetic closure",
        "elastic mount", "elastic stand", "elastic holder", "elastic closure",
        "metal mount", "metal stand", "metal holder", "metal closure",
        "hidden mount", "hidden stand", "hidden holder", "hidden closure",
    ],
};

/// Four makes of four parts: see [`Pool::texts`].
#[rustfmt::skip]
static SCREEN_PARTS: Pool = Pool {
    form: Form::Has,
    texts: &[
        "tempered glass", "tempered edges", "tempered coating", "tempered corners",
        "ceramic glass", "ceramic edges", "ceramic coating", "ceramic corners",
        "nano glass", "nano edges", "nano coating", "nano corners",
        "acrylic glass", "acrylic edges", "acrylic coating", "acrylic corners",
    ],
};

static PLACES: Pool = Pool {
    form: Form::For,
    texts: &[
        "home theater",
        "video calls",
        "office work",
        "outdoor parties",
        "small hands",
        "car trips",
        "night use",
        "online games",
    ],
};

const GADGET: Kind = Kind {
    query: "",
    section: "accessories",
    dollars: (8, 58),
    audiences: &[],
    materials: &["aluminum", "nylon", "carbon fiber", "recycled plastic"],
    pools: [&QUALITIES, &PARTS, &PLACES],
    groups: &[&SHELL, &PACK, &CONNECTOR],
    tails: &["2 pack", "4 pack", "usb c"],
};

const SOUND: Kind = Kind {
    section: "audio",
    dollars: (18, 160),
    pools: [&SOUND_QUALITIES, &SOUND_PARTS, &PLACES],
    groups: &[&SHELL, &CONNECTOR],
    tails: &["usb c", "2 pack"],
    ..GADGET
};

const COVER: Kind = Kind {
    section: "cases",
    dollars: (7, 42),
    materials: &["leather", "silicone", "carbon fiber", "felt"],
    pools: [&COVER_QUALITIES, &COVER_PARTS, &PLACES],
    groups: &[&DEVICE, &COLOR, &PATTERN],
    tails: &["2 pack"],
    ..GADGET
};

pub(super) static ELECTRONICS: Department = Department {
    name: "electronics",
    root: "electronics",
    kinds: &[
        Kind { query: "wireless earbuds", ..SOUND },
        Kind { query: "gaming headset", ..SOUND },
        Kind { query: "bluetooth speaker", ..SOUND },
        Kind { query: "sound bar", dollars: (45, 320), ..SOUND },
        Kind { query: "phone case", ..COVER },
        Kind { query: "tablet case", ..COVER },
        Kind {
            query: "screen protector",
            pools: [&COVER_QUALITIES, &SCREEN_PARTS, &PLACES],
            materials: &[],
            groups: &[&DEVICE, &PACK],
            ..COVER
        },
        Kind { query: "laptop sleeve", groups: &[&LAPTOP, &COLOR, &PATTERN], ..COVER },
        Kind { query: "phone charger", groups: &[&COLOR, &LENGTH, &CONNECTOR], ..GADGET },
        Kind { query: "power bank", dollars: (15, 75), ..GADGET },
        Kind { query: "hdmi cable", groups: &[&LENGTH, &COLOR, &PACK], ..GADGET },
        Kind { query: "charging cable", groups: &[&LENGTH, &COLOR, &CONNECTOR], ..GADGET },
        Kind { query: "wireless mouse", groups: &[&SHELL, &CONNECTOR], ..GADGET },
        Kind { query: "gaming keyboard", dollars: (25, 140), groups: &[&SWITCH, &SHELL], ..GADGET },
        Kind { query: "laptop stand", groups: &[&LAPTOP, &COLOR], ..GADGET },
    ],
    uses: &["a shared flat", "your travel bag", "a long flight", "the desk at work", "a day on the road"],
    remarks: &[
        "a manual comes in the box",
        "works right out of the box",
        "our team answers within one day",
        "check your model before you buy",
        "one year of support included",
    ],
};
