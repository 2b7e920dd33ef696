//! Options of generated products.
//!
//! Values are in lower case with `/` where the original's sellers write it. No two values of a group
//! count as equal in the reward's fuzzy comparison, nor name the same colour by its rule.

use super::Group;

static COLORS: &[&str] = &[
    "black",
    "white",
    "navy",
    "red",
    "olive",
    "gray",
    "purple",
    "brown",
    "beige",
    "teal/orange",
    "rose gold",
    "sky blue",
    "forest green",
    "pink",
    "yellow",
    "burgundy/silver",
    "charcoal",
    "turquoise",
    "ivory",
];

pub(in super::super) static COLOR: Group = Group {
    name: "color",
    values: COLORS,
    phrases: &["in {}", "in the color {}", "the color should be {}", "{} in color"],
};

/// Colours again under another name, as sellers do.
pub(in super::super) static SHELL: Group = Group {
    name: "shell color",
    values: COLORS,
    phrases: &["in {}", "with {} shell color", "the shell color should be {}", "in shell color {}"],
};

pub(in super::super) static PATTERN: Group = Group {
    name: "pattern",
    values: &["solid", "striped", "floral", "plaid", "leopard", "marble", "polka dot", "geometric", "camo"],
    phrases: &["with {} pattern", "{} pattern", "the pattern should be {}", "in the {} print"],
};

pub(in super::super) static PACK: Group = Group {
    name: "pack",
    values: &["single", "2 pack", "4 pack", "6 pack", "10 pack"],
    phrases: &["{}", "as {}", "i want the {}", "sold as {}"],
};

pub(in super::super) static SCENT: Group = Group {
    name: "scent",
    values: &[
        "lavender",
        "rose",
        "vanilla",
        "citrus",
        "cedarwood",
        "clean linen",
        "eucalyptus/mint",
        "jasmine",
        "peach",
        "crème brûlée",
        "coconut",
        "mango",
    ],
    phrases: &["with {} scent", "{} scented", "the scent should be {}", "that smells of {}"],
};

pub(in super::super) static VOLUME: Group = Group {
    name: "size",
    values: &["2 oz", "4 oz", "8 oz", "16 oz", "100 ml"],
    phrases: &["in {}", "size {}", "in the {} size", "{} size"],
};

pub(in super::super) static TRAVEL_SIZE: Group = Group {
    name: "size",
    values: &["travel", "regular", "jumbo"],
    phrases: &["size {}", "in the {} size", "{} size", "in {}"],
};

pub(in super::super) static SHADE: Group = Group {
    name: "shade",
    values: &[
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
    ],
    phrases: &["in {}", "in shade {}", "{} shade", "the shade should be {}"],
};

pub(in super::super) static GLOSS: Group = Group {
    name: "finish",
    values: &["matte", "glossy", "shimmer", "satin"],
    phrases: &["with {} finish", "{} finish", "the finish should be {}", "in {}"],
};

pub(in super::super) static BRISTLES: Group = Group {
    name: "firmness",
    values: &["soft", "medium", "firm"],
    phrases: &["{} firmness", "with firmness {}", "the firmness should be {}", "in {}"],
};

pub(in super::super) static DEVICE: Group = Group {
    name: "device",
    values: &["iphone 13", "galaxy s22", "pixel 7", "ipad mini", "moto g", "nokia x20"],
    phrases: &["for {}", "that fits {}", "made for {}", "the device is {}"],
};

pub(in super::super) static LAPTOP: Group = Group {
    name: "screen size",
    values: &["11 inch", "13.3 inch", "15.6 inch", "14 in"],
    phrases: &["for {}", "that fits {}", "the screen size is {}", "size {}"],
};

pub(in super::super) static CONNECTOR: Group = Group {
    name: "plug",
    values: &["usb c", "micro usb", "lightning", "type a"],
    phrases: &["with {}", "with plug {}", "the plug should be {}", "{} plug"],
};

pub(in super::super) static LENGTH: Group = Group {
    name: "length",
    values: &["3 ft", "6 ft", "10 ft", "25 ft"],
    phrases: &["{} long", "in {}", "with length {}", "the length should be {}"],
};

pub(in super::super) static SWITCH: Group = Group {
    name: "switch",
    values: &["clicky", "linear", "tactile", "silent"],
    phrases: &["with {} switch", "{} switch", "the switch should be {}", "in {}"],
};

pub(in super::super) static BED: Group = Group {
    name: "size",
    values: &["twin", "full", "queen", "king", "crib"],
    phrases: &["in size {}", "size {}", "in the {} size", "{} size"],
};

pub(in super::super) static RUG: Group = Group {
    name: "size",
    values: &["2 x 3 ft", "4 x 6 ft", "5 x 7 ft", "8 x 10 ft"],
    phrases: &["in size {}", "size {}", "{} size", "that measures {}"],
};

pub(in super::super) static WINDOW: Group = Group {
    name: "length",
    values: &["63 inch", "72 inch", "84 inch", "95 inch"],
    phrases: &["{} long", "in {}", "with length {}", "the length should be {}"],
};

pub(in super::super) static POT: Group = Group {
    name: "size",
    values: &["4 inch", "6 inch", "8 inch", "10 inch"],
    phrases: &["in size {}", "size {}", "{} size", "that measures {}"],
};

pub(in super::super) static SHAPE: Group = Group {
    name: "shape",
    values: &["round", "square", "oval", "hexagon"],
    phrases: &["with {} shape", "{} shape", "the shape should be {}", "in {}"],
};

pub(in super::super) static FINISH: Group = Group {
    name: "finish",
    values: &["painted iron", "honey oak", "walnut", "brushed nickel", "antique bronze", "natural"],
    phrases: &["with {} finish", "in {}", "{} finish", "the finish should be {}"],
};

pub(in super::super) static BULB: Group = Group {
    name: "light",
    values: &["warm white", "daylight", "multicolor", "amber"],
    phrases: &["with {} light", "{} light", "the light should be {}", "in {}"],
};

pub(in super::super) static SHOE_SIZE: Group = Group {
    name: "size",
    values: &["6", "7.5", "8", "9", "10.5", "11", "12"],
    phrases: &["in size {}", "size {}", "in a size {}", "the size is {}"],
};

pub(in super::super) static WIDTH: Group = Group {
    name: "width",
    values: &["narrow", "regular", "wide"],
    phrases: &["in {} width", "{} width", "the width should be {}", "with width {}"],
};

pub(in super::super) static CLOTHES_SIZE: Group = Group {
    name: "size",
    values: &["small", "medium", "large", "xl", "3xl"],
    phrases: &["in size {}", "size {}", "in a size {}", "the size is {}"],
};

pub(in super::super) static INSEAM: Group = Group {
    name: "length",
    values: &["petite", "regular", "tall"],
    phrases: &["{} length", "with length {}", "the length should be {}", "in {}"],
};

pub(in super::super) static BAND: Group = Group {
    name: "size",
    values: &["38 mm", "42 mm", "45 mm", "20 mm"],
    phrases: &["in size {}", "size {}", "{} size", "that measures {}"],
};

pub(in super::super) static SWEET: Group = Group {
    name: "flavor",
    values: &[
        "vanilla",
        "chocolate",
        "blueberry",
        "strawberry",
        "maple",
        "cinnamon",
        "salted caramel",
        "banana/walnut",
        "crème brûlée",
    ],
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static SAVORY: Group = Group {
    name: "flavor",
    values: &["jalapeño", "barbecue", "ranch", "garlic/herb", "teriyaki", "original", "lemon pepper", "dill"],
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static DRINK: Group = Group {
    name: "flavor",
    values: &["lemon", "mango", "peach", "mint", "berry/lime", "hibiscus", "açaí", "vanilla"],
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static CANDY: Group = Group {
    name: "flavor",
    values: &["mint", "cherry", "orange", "salted caramel", "coffee", "raspberry", "coconut", "mango"],
    phrases: &["{} flavor", "in {} flavor", "the flavor should be {}", "that tastes of {}"],
};

pub(in super::super) static HEAT: Group = Group {
    name: "heat",
    values: &["mild", "medium", "spicy", "extra hot"],
    phrases: &["{} heat", "with heat {}", "the heat should be {}", "that is {}"],
};

pub(in super::super) static ROAST: Group = Group {
    name: "roast",
    values: &["light", "medium", "dark", "french"],
    phrases: &["{} roast", "in {} roast", "the roast should be {}", "with {} roast"],
};

pub(in super::super) static SPREAD: Group = Group {
    name: "texture",
    values: &["creamy", "crunchy", "smooth", "whipped"],
    phrases: &["{} texture", "with {} texture", "the texture should be {}", "in {}"],
};

pub(in super::super) static BAG: Group = Group {
    name: "weight",
    values: &["4 oz", "8 oz", "16 oz", "2 lb", "5 lb"],
    phrases: &["in {}", "weight {}", "the weight should be {}", "{} bag"],
};
