//! Color families: "wine red" and "red" are the same requirement.
//!
//! [`normalize_color`] replaces a text by the first word of [`COLORS`] it contains, anywhere, even
//! inside another word; a text without one stays. The list and its order are the original's, and
//! the order is the rule: "navy blue" is "blue", since `blue` is first.
//!
//! It does not know that crimson is a red.

/// The words looked for, in the order they are tried.
pub const COLORS: [&str; 102] = [
    "alabaster",
    "apricot",
    "aqua",
    "ash",
    "asphalt",
    "azure",
    "banana",
    "beige",
    "black",
    "blue",
    "blush",
    "bordeaux",
    "bronze",
    "brown",
    "burgundy",
    "camel",
    "camo",
    "caramel",
    "champagne",
    "charcoal",
    "cheetah",
    "chestnut",
    "chocolate",
    "christmas",
    "coffee",
    "cognac",
    "copper",
    "coral",
    "cranberry",
    "cream",
    "crystal",
    "dark",
    "denim",
    "eggplant",
    "elephant",
    "espresso",
    "fuchsia",
    "gold",
    "granite",
    "grape",
    "graphite",
    "grass",
    "gray",
    "green",
    "grey",
    "heather",
    "indigo",
    "ivory",
    "ivy",
    "khaki",
    "lavender",
    "lemon",
    "leopard",
    "light",
    "lilac",
    "lime",
    "magenta",
    "maroon",
    "mauve",
    "merlot",
    "midnight",
    "mint",
    "mocha",
    "multicolor",
    "mushroom",
    "mustard",
    "natural",
    "navy",
    "nude",
    "olive",
    "orange",
    "peach",
    "pewter",
    "pink",
    "plum",
    "purple",
    "rainbow",
    "red",
    "rose",
    "royal",
    "rust",
    "sand",
    "sapphire",
    "seashell",
    "silver",
    "skull",
    "slate",
    "steel",
    "stone",
    "stonewash",
    "sunflower",
    "tan",
    "taupe",
    "teal",
    "tiger",
    "turquoise",
    "violet",
    "walnut",
    "wheat",
    "white",
    "wine",
    "yellow",
];

/// The first of [`COLORS`] that `text` contains, or `text` itself.
///
/// ```
/// use webshop_env::normalize_color;
/// assert_eq!(normalize_color("navy blue"), "blue");
/// assert_eq!(normalize_color("4x-large"), "4x-large");
/// ```
pub fn normalize_color(text: &str) -> &str {
    COLORS.into_iter().find(|color| text.contains(color)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_color_is_found_inside_a_word() {
        // The original's known oddity: `rectangular` holds `tan`.
        assert_eq!(normalize_color("rectangular"), "tan");
    }

    #[test]
    fn capitals_are_not_colors() {
        assert_eq!(normalize_color("Red"), "Red");
    }
}
