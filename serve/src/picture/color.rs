//! Colors by their names.

/// Names of two words, which are looked for before those of one word.
const PAIRS: [(&str, &str); 6] = [
    ("rose gold", "#d9a08f"),
    ("sky blue", "#7db9e8"),
    ("forest green", "#2f6b45"),
    ("hot pink", "#e64a91"),
    ("warm white", "#f6e7c6"),
    ("light blue", "#9cc9ec"),
];

/// Names of one word. Words that only qualify a color, such as `light`, are left out.
const WORDS: [(&str, &str); 92] = [
    ("alabaster", "#efe8dc"),
    ("amber", "#e0a030"),
    ("apricot", "#f2b27c"),
    ("aqua", "#4fc3c7"),
    ("ash", "#b2b5b2"),
    ("asphalt", "#4d5359"),
    ("azure", "#3f8fd9"),
    ("banana", "#f4dc6a"),
    ("beige", "#dcc9a6"),
    ("black", "#33363d"),
    ("blue", "#3570c4"),
    ("blush", "#e9b3b0"),
    ("bordeaux", "#6d2434"),
    ("bronze", "#a9713c"),
    ("brown", "#7d5537"),
    ("burgundy", "#7c2337"),
    ("camel", "#bf955c"),
    ("camo", "#6e7650"),
    ("caramel", "#b9763a"),
    ("champagne", "#ecd9b4"),
    ("charcoal", "#474c54"),
    ("cheetah", "#c9944a"),
    ("chestnut", "#84462f"),
    ("chocolate", "#5d3a26"),
    ("coffee", "#6b4a35"),
    ("cognac", "#9c5630"),
    ("copper", "#b56b3e"),
    ("coral", "#f07b64"),
    ("cranberry", "#a32440"),
    ("cream", "#f3e8cb"),
    ("crystal", "#cfe5ee"),
    ("daylight", "#eef3f6"),
    ("denim", "#48699a"),
    ("eggplant", "#4e2f56"),
    ("espresso", "#4a3328"),
    ("fuchsia", "#cc3a9a"),
    ("gold", "#d3a93c"),
    ("granite", "#7a7d80"),
    ("grape", "#653a80"),
    ("graphite", "#54585d"),
    ("grass", "#5f9d44"),
    ("gray", "#8e949c"),
    ("green", "#3f9158"),
    ("grey", "#8e949c"),
    ("heather", "#a39fb0"),
    ("indigo", "#40418f"),
    ("ivory", "#f1ead6"),
    ("ivy", "#44663f"),
    ("khaki", "#a99f72"),
    ("lavender", "#b3a4d8"),
    ("lemon", "#f2da52"),
    ("leopard", "#c9944a"),
    ("lilac", "#c2a3d1"),
    ("lime", "#a3c93f"),
    ("magenta", "#c2327e"),
    ("maroon", "#752a32"),
    ("mauve", "#a9849c"),
    ("merlot", "#6b2638"),
    ("midnight", "#262f52"),
    ("mint", "#a5dcc0"),
    ("mocha", "#84634f"),
    ("mustard", "#cfa12e"),
    ("navy", "#2c3f6b"),
    ("nude", "#e2bfa3"),
    ("olive", "#7c7d3f"),
    ("orange", "#e8833a"),
    ("peach", "#f5bb96"),
    ("pewter", "#8b8f94"),
    ("pink", "#ec8fb0"),
    ("plum", "#71385f"),
    ("purple", "#7b4a9e"),
    ("red", "#c8333a"),
    ("rose", "#d9728a"),
    ("royal", "#3450b0"),
    ("rust", "#ab4f2b"),
    ("sand", "#d9c59a"),
    ("sapphire", "#2a52a3"),
    ("seashell", "#f3e1d5"),
    ("silver", "#c3c8ce"),
    ("slate", "#63707e"),
    ("steel", "#8797a5"),
    ("stone", "#b7b0a3"),
    ("tan", "#c8a77c"),
    ("taupe", "#948679"),
    ("teal", "#2f8a8a"),
    ("turquoise", "#43bfb5"),
    ("violet", "#7f56b5"),
    ("walnut", "#6a4a33"),
    ("wheat", "#e4cc98"),
    ("white", "#f7f7f5"),
    ("wine", "#70263c"),
    ("yellow", "#f0cd43"),
];

/// Colors of products that name none.
const DRAWN: [&str; 10] = [
    "#4f7cac", "#c26a5a", "#5e9c76", "#d0a24c", "#8469a8", "#4a9aa0", "#b8688f", "#7d8b57", "#a5714d",
    "#63758c",
];

/// The first color that a text names, as whole words in any case.
pub(super) fn named(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let pairs = words.windows(2).find_map(|pair| hex_of(&PAIRS, &pair.join(" ")));
    pairs.or_else(|| words.iter().find_map(|word| hex_of(&WORDS, word)))
}

/// The color that a number draws.
pub(super) fn drawn(draw: u64) -> &'static str {
    let n = DRAWN.len() as u64;
    DRAWN[(draw % n) as usize]
}

fn hex_of(colors: &[(&str, &'static str)], wanted: &str) -> Option<&'static str> {
    colors.iter().find(|(name, _)| *name == wanted).map(|(_, hex)| *hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_color_is_a_whole_word_and_pairs_come_first() {
        let hex = |name| hex_of(&WORDS, name);
        assert_eq!(named("A-Olive / xl"), hex("olive"));
        assert_eq!(named("Gold, rose gold"), hex_of(&PAIRS, "rose gold"));
        assert_eq!(named("redwood drawer, blue"), hex("blue"));
        assert_eq!(named("large"), None);
        assert_eq!(named(""), None);
    }
}
