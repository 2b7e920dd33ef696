//! Options of generated products.
//!
//! A value is one of a group's heads, or a head in one of its forms: `small`, `small wide`, `navy/red`. So
//! values of a group contain each other and share words, as those of the original do. Everything is in lower
//! case, with `/` where the original's sellers write it.

use super::Group;

/// Colors, with the sellers' shades and numbers.
pub(in super::super) static COLOR: Group = Group {
    name: "color",
    heads: &[
        "black",
        "white",
        "navy",
        "red",
        "olive",
        "gray",
        "purple",
        "brown",
        "beige",
        "teal",
        "rose gold",
        "sky blue",
        "forest green",
        "pink",
        "yellow",
        "burgundy",
        "charcoal",
        "turquoise",
        "ivory",
        "khaki",
        "coral",
        "mint",
        "slate",
        "sand",
    ],
    forms: &[
        "matte {}", "light {}", "dark {}", "{}/{+}", "{}-{+}", "{} camo", "{} {n}", "a-{}", "{n}# {}",
        "{} + {+}",
    ],
    is_ordered: false,
    phrases: &["in {}", "in the color {}", "the color should be {}", "{} in color"],
};

/// Colors under another name.
pub(in super::super) static SHELL: Group = Group {
    name: "shell color",
    heads: &[
        "black",
        "white",
        "navy",
        "red",
        "olive",
        "gray",
        "purple",
        "silver",
        "teal",
        "rose gold",
        "sky blue",
        "pink",
        "yellow",
        "charcoal",
        "ivory",
    ],
    forms: &["matte {}", "{}/{+}", "{}-{+}", "glossy {}", "{} {n}"],
    is_ordered: false,
    phrases: &["in {}", "with {} shell color", "the shell color should be {}", "in shell color {}"],
};

pub(in super::super) static PATTERN: Group = Group {
    name: "pattern",
    heads: &[
        "solid",
        "striped",
        "floral",
        "plaid",
        "leopard",
        "marble",
        "polka dot",
        "geometric",
        "camo",
        "paisley",
        "gingham",
        "chevron",
    ],
    forms: &["{} {n}", "small {}", "big {}", "{} & {+}", "{}-{n}"],
    is_ordered: false,
    phrases: &["with {} pattern", "{} pattern", "the pattern should be {}", "in the {} print"],
};

pub(in super::super) static PACK: Group = Group {
    name: "pack",
    heads: &["single", "pack of 2", "pack of 12", "trio", "6 count", "box of 20", "case of 48", "twin set"],
    forms: &["{} plus 1 spare", "{} (boxed)", "{} (refill)"],
    is_ordered: true,
    phrases: &["{}", "as a {}", "i want the {}", "sold as {}"],
};

pub(in super::super) static SCENT: Group = Group {
    name: "scent",
    heads: &[
        "lavender",
        "rose",
        "vanilla",
        "citrus",
        "cedarwood",
        "clean linen",
        "eucalyptus",
        "jasmine",
        "peach",
        "coconut",
        "mango",
        "green tea",
        "unscented",
    ],
    forms: &["{} & {+}", "wild {}", "{}/{+}", "{} blossom", "no. {n} {}"],
    is_ordered: false,
    phrases: &["with {} scent", "{} scented", "the scent should be {}", "that smells of {}"],
};

pub(in super::super) static VOLUME: Group = Group {
    name: "size",
    heads: &["2 oz", "4 oz", "8 oz", "16 oz", "100 ml", "1 liter", "half gallon"],
    forms: &["{} (pack of 2)", "{} (pack of 3)", "{} (pack of 12)", "{} refill"],
    is_ordered: true,
    phrases: &["in {}", "size {}", "in the {} size", "{} size"],
};

pub(in super::super) static TRAVEL_SIZE: Group = Group {
    name: "size",
    heads: &["mini", "travel", "regular", "large", "jumbo"],
    forms: &["{} (pack of 2)", "{} wide", "{} slim", "{} + case"],
    is_ordered: true,
    phrases: &["size {}", "in the {} size", "{} size", "in {}"],
};

pub(in super::super) static SHADE: Group = Group {
    name: "shade",
    heads: &[
        "ruby red",
        "coral",
        "plum",
        "soft nude",
        "peach",
        "mocha",
        "dusty rose",
        "wine",
        "fuchsia",
        "caramel",
        "berry",
        "cocoa",
    ],
    forms: &["{n} {}", "deep {}", "{} glow", "{n}-{}", "{} kiss"],
    is_ordered: false,
    phrases: &["in {}", "in shade {}", "{} shade", "the shade should be {}"],
};

pub(in super::super) static GLOSS: Group = Group {
    name: "finish",
    heads: &["matte", "glossy", "shimmer", "satin", "metallic"],
    forms: &["soft {}", "{} + {+}", "ultra {}"],
    is_ordered: false,
    phrases: &["with {} finish", "{} finish", "the finish should be {}", "in {}"],
};

pub(in super::super) static BRISTLES: Group = Group {
    name: "firmness",
    heads: &["soft", "medium", "firm"],
    forms: &["extra {}", "{} (angled)", "{}/{+}"],
    is_ordered: true,
    phrases: &["{} firmness", "with firmness {}", "the firmness should be {}", "in {}"],
};

pub(in super::super) static DEVICE: Group = Group {
    name: "device",
    heads: &[
        "iphone 13",
        "galaxy s22",
        "pixel 7",
        "ipad mini",
        "moto g",
        "nokia x20",
        "kindle",
        "redmi note",
        "oneplus nord",
        "xperia",
    ],
    forms: &["{} pro", "{} pro max", "{} plus", "{} mini", "{} 5g", "{} ({n} inch)"],
    is_ordered: true,
    phrases: &["for {}", "that fits {}", "made for {}", "the device is {}"],
};

pub(in super::super) static LAPTOP: Group = Group {
    name: "screen size",
    heads: &["11 inch", "13.3 inch", "15.6 inch", "14 in", "macbook air", "chromebook"],
    forms: &["{} slim", "{} (touch)"],
    is_ordered: true,
    phrases: &["for {}", "that fits {}", "the screen size is {}", "size {}"],
};

pub(in super::super) static CONNECTOR: Group = Group {
    name: "plug",
    heads: &["usb c", "micro usb", "lightning", "type a"],
    forms: &["{} + {+}", "{} 2.0", "{} 3.1", "{} (fast)"],
    is_ordered: false,
    phrases: &["with {}", "with plug {}", "the plug should be {}", "{} plug"],
};

pub(in super::super) static LENGTH: Group = Group {
    name: "length",
    heads: &["3 ft", "6 ft", "10 ft", "25 ft", "1 meter"],
    forms: &["{} (2 pack)", "{} (3 pack)", "{} coiled"],
    is_ordered: true,
    phrases: &["{} long", "in {}", "with length {}", "the length should be {}"],
};

pub(in super::super) static SWITCH: Group = Group {
    name: "switch",
    heads: &["clicky", "linear", "tactile", "silent"],
    forms: &["{} blue", "{} + {+}", "{} v{n}"],
    is_ordered: false,
    phrases: &["with {} switch", "{} switch", "the switch should be {}", "in {}"],
};

pub(in super::super) static BED: Group = Group {
    name: "size",
    heads: &["crib", "twin", "full", "queen", "king"],
    forms: &["{} xl", "{} (4 piece)", "{} (6 piece)", "california {}", "{}/{+}"],
    is_ordered: true,
    phrases: &["in size {}", "size {}", "in the {} size", "{} size"],
};

pub(in super::super) static RUG: Group = Group {
    name: "size",
    heads: &["2 x 3 ft", "4 x 6 ft", "5 x 7 ft", "8 x 10 ft", "runner", "9 x 12 ft"],
    forms: &["{} oval", "{} (set of 2)", "{} with pad"],
    is_ordered: true,
    phrases: &["in size {}", "size {}", "{} size", "that measures {}"],
};

pub(in super::super) static WINDOW: Group = Group {
    name: "length",
    heads: &["63 inch", "72 inch", "84 inch", "95 inch", "108 inch"],
    forms: &["{} x 2 panels", "{} (1 panel)", "52 x {}", "42 x {}"],
    is_ordered: true,
    phrases: &["{} long", "in {}", "with length {}", "the length should be {}"],
};

pub(in super::super) static POT: Group = Group {
    name: "size",
    heads: &["4 inch", "6 inch", "8 inch", "10 inch", "bowl"],
    forms: &["{} (set of 3)", "{} + {+}", "{} with saucer"],
    is_ordered: true,
    phrases: &["in size {}", "size {}", "{} size", "that measures {}"],
};

pub(in super::super) static SHAPE: Group = Group {
    name: "shape",
    heads: &["round", "square", "oval", "hexagon", "rectangle"],
    forms: &["{} small", "{} large", "tall {}", "{}-{n}"],
    is_ordered: false,
    phrases: &["with {} shape", "{} shape", "the shape should be {}", "in {}"],
};

pub(in super::super) static FINISH: Group = Group {
    name: "finish",
    heads: &[
        "painted iron",
        "honey oak",
        "walnut",
        "brushed nickel",
        "antique bronze",
        "natural",
        "espresso",
        "weathered gray",
    ],
    forms: &["{} & {+}", "dark {}", "{}/{+}", "{} (matte)"],
    is_ordered: false,
    phrases: &["with {} finish", "in {}", "{} finish", "the finish should be {}"],
};

pub(in super::super) static BULB: Group = Group {
    name: "light",
    heads: &["warm white", "daylight", "multicolor", "amber", "neutral"],
    forms: &["{} (dimmable)", "{} 2 pack", "{}/{+}", "{} {n}w"],
    is_ordered: false,
    phrases: &["with {} light", "{} light", "the light should be {}", "in {}"],
};

pub(in super::super) static SHOE_SIZE: Group = Group {
    name: "size",
    heads: &["6", "7.5", "8", "9", "10.5", "11", "12", "13"],
    forms: &["{} wide", "{} narrow", "{} x-wide", "{}-{+}"],
    is_ordered: true,
    phrases: &["in size {}", "size {}", "in a size {}", "the size is {}"],
};

pub(in super::super) static WIDTH: Group = Group {
    name: "width",
    heads: &["narrow", "regular", "wide"],
    forms: &["x-{}", "xx-{}", "{} (2e)"],
    is_ordered: true,
    phrases: &["in {} width", "{} width", "the width should be {}", "with width {}"],
};

pub(in super::super) static CLOTHES_SIZE: Group = Group {
    name: "size",
    heads: &["small", "medium", "large", "x-large", "2xl", "3xl", "one size"],
    forms: &["{} tall", "{} short", "{} plus", "{} wide", "{}/{+}"],
    is_ordered: true,
    phrases: &["in size {}", "size {}", "in a size {}", "the size is {}"],
};

pub(in super::super) static INSEAM: Group = Group {
    name: "length",
    heads: &["petite", "short", "regular", "tall"],
    forms: &["{} (28 in)", "{} (30 in)", "{} (34 in)", "extra {}"],
    is_ordered: true,
    phrases: &["{} length", "with length {}", "the length should be {}", "in {}"],
};

pub(in super::super) static BAND: Group = Group {
    name: "size",
    heads: &["20 mm", "22 mm", "38 mm", "40 mm", "42 mm", "45 mm"],
    forms: &["{} (s/m)", "{} (m/l)", "{}/{+}"],
    is_ordered: true,
    phrases: &["in size {}", "size {}", "{} size", "that measures {}"],
};
