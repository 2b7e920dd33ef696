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
    heads: &[
        "pack of 1",
        "pack of 2",
        "pack of 3",
        "pack of 4",
        "pack of 6",
        "pack of 8",
        "pack of 10",
        "pack of 12",
        "pack of 20",
        "pack of 24",
    ],
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
    heads: &["1 fl oz", "2 fl oz", "4 fl oz", "8 fl oz", "12 fl oz", "16 fl oz", "100 ml", "250 ml"],
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
        "iphone 11",
        "iphone 12",
        "iphone 13",
        "galaxy s21",
        "galaxy s22",
        "pixel 6",
        "pixel 7",
        "ipad mini",
        "ipad air",
        "moto g",
        "nokia x20",
    ],
    forms: &["{} pro", "{} pro max", "{} plus", "{} mini", "{} 5g", "{} ({n} inch)"],
    is_ordered: true,
    phrases: &["for {}", "that fits {}", "made for {}", "the device is {}"],
};

pub(in super::super) static LAPTOP: Group = Group {
    name: "screen size",
    heads: &["11 inch", "12.5 inch", "13.3 inch", "14 inch", "15.6 inch", "16 inch", "17.3 inch"],
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
    heads: &["1.5 ft", "3 ft", "6 ft", "10 ft", "15 ft", "25 ft", "50 ft"],
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
    heads: &[
        "2 ft x 3 ft",
        "2.6 ft x 8 ft",
        "4 ft x 6 ft",
        "5 ft x 7 ft",
        "5.3 ft x 7.6 ft",
        "6 ft x 9 ft",
        "8 ft x 10 ft",
        "9 ft x 12 ft",
    ],
    forms: &["{} oval", "{} (set of 2)", "{} with pad"],
    is_ordered: true,
    phrases: &["in size {}", "size {}", "{} size", "that measures {}"],
};

pub(in super::super) static WINDOW: Group = Group {
    name: "length",
    heads: &["45 inch", "54 inch", "63 inch", "72 inch", "84 inch", "95 inch", "108 inch"],
    forms: &["{} x 2 panels", "{} (1 panel)", "52 x {}", "42 x {}"],
    is_ordered: true,
    phrases: &["{} long", "in {}", "with length {}", "the length should be {}"],
};

pub(in super::super) static POT: Group = Group {
    name: "size",
    heads: &["4 inch", "5 inch", "6 inch", "8 inch", "10 inch", "12 inch"],
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
    heads: &["warm white", "daylight", "multicolor", "amber", "cool white"],
    forms: &["{} (dimmable)", "{} 2 pack", "{}/{+}", "{} {n}w"],
    is_ordered: false,
    phrases: &["with {} light", "{} light", "the light should be {}", "in {}"],
};

pub(in super::super) static SHOE_SIZE: Group = Group {
    name: "size",
    heads: &["5", "6", "6.5", "7", "7.5", "8", "8.5", "9", "9.5", "10", "10.5", "11", "12", "13"],
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
    heads: &["x-small", "small", "medium", "large", "x-large", "xx-large", "3x-large", "4x-large"],
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

pub(in super::super) static SWEET: Group = Group {
    name: "flavor",
    heads: &[
        "vanilla",
        "chocolate",
        "blueberry",
        "strawberry",
        "maple",
        "cinnamon",
        "salted caramel",
        "banana",
        "apple",
        "pumpkin",
    ],
    forms: &["{} walnut", "{} & {+}", "dark {}", "{}/{+}", "double {}"],
    is_ordered: false,
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static SAVORY: Group = Group {
    name: "flavor",
    heads: &[
        "jalapeño",
        "barbecue",
        "ranch",
        "garlic",
        "teriyaki",
        "original",
        "lemon pepper",
        "dill",
        "sea salt",
        "chipotle",
    ],
    forms: &["{} & {+}", "smoky {}", "sweet {}", "{}/{+}"],
    is_ordered: false,
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static DRINK: Group = Group {
    name: "flavor",
    heads: &["lemon", "mango", "peach", "mint", "berry", "hibiscus", "açaí", "vanilla", "ginger", "lime"],
    forms: &["{} & {+}", "{}/{+}", "iced {}", "{} zero"],
    is_ordered: false,
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static CANDY: Group = Group {
    name: "flavor",
    heads: &[
        "mint",
        "cherry",
        "orange",
        "salted caramel",
        "coffee",
        "raspberry",
        "coconut",
        "mango",
        "sour apple",
    ],
    forms: &["{} & {+}", "{} swirl", "dark {}", "{}/{+}"],
    is_ordered: false,
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static HEAT: Group = Group {
    name: "heat",
    heads: &["mild", "medium", "spicy", "hot"],
    forms: &["extra {}", "{} + {+}", "{} no. {n}"],
    is_ordered: true,
    phrases: &["{} heat", "with heat {}", "the heat should be {}", "that is {}"],
};

pub(in super::super) static ROAST: Group = Group {
    name: "roast",
    heads: &["light", "medium", "dark", "french", "espresso"],
    forms: &["{} (decaf)", "{}-{+}", "extra {}", "{} no. {n}"],
    is_ordered: false,
    phrases: &["{} roast", "in {} roast", "the roast should be {}", "with {} roast"],
};

pub(in super::super) static SPREAD: Group = Group {
    name: "texture",
    heads: &["creamy", "crunchy", "smooth", "whipped"],
    forms: &["extra {}", "{} (no stir)", "{} + {+}"],
    is_ordered: false,
    phrases: &["{} texture", "with {} texture", "the texture should be {}", "in {}"],
};

pub(in super::super) static BAG: Group = Group {
    name: "weight",
    heads: &["4 ounce", "8 ounce", "12 ounce", "16 ounce", "1 pound", "2 pound", "5 pound"],
    forms: &["{} (pack of 1)", "{} (pack of 2)", "{} (pack of 6)", "{} (pack of 12)"],
    is_ordered: true,
    phrases: &["in {}", "weight {}", "the weight should be {}", "{} bag"],
};
