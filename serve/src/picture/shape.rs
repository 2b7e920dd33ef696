//! Shapes by the kind of product.

use webshop_products::Product;

/// The drawings, a symbol each.
const SHAPES: &str = include_str!("../../assets/shapes.svg");

/// The shape of a product of no known kind.
const PARCEL: &str = "parcel";

/// Words of a kind, all of which must occur at the start of a word, and its shape. The first entry counts.
const KINDS: [(&str, &str); 110] = [
    ("makeup brush", "brush"),
    ("hair brush", "brush"),
    ("toothbrush", "brush"),
    ("lip balm", "lipstick"),
    ("lipstick", "lipstick"),
    ("mascara", "lipstick"),
    ("nail polish", "polish"),
    ("perfume", "polish"),
    ("serum", "dropper"),
    ("essential oil", "dropper"),
    ("bath bomb", "balls"),
    ("shampoo bar", "soap"),
    ("soap", "soap"),
    ("hand cream", "tube"),
    ("eye cream", "tube"),
    ("toothpaste", "tube"),
    ("sunscreen", "tube"),
    ("cream", "jar"),
    ("mask", "jar"),
    ("peanut butter", "jar"),
    ("pasta sauce", "jar"),
    ("candle", "jar"),
    ("hot sauce", "bottle"),
    ("lotion", "pump"),
    ("body wash", "pump"),
    ("conditioner", "pump"),
    ("shampoo", "pump"),
    ("energy drink", "can"),
    ("soda", "can"),
    ("coffee table", "table"),
    ("desk", "table"),
    ("tables", "table"),
    ("coffee pod", "mug"),
    ("tea", "mug"),
    ("mug", "mug"),
    ("protein bar", "bar"),
    ("granola bar", "bar"),
    ("chocolate", "chocolate"),
    ("coffee", "pouch"),
    ("jerky", "pouch"),
    ("candy", "pouch"),
    ("pancake", "pouch"),
    ("chips", "pouch"),
    ("cracker", "pouch"),
    ("trail mix", "pouch"),
    ("nuts", "pouch"),
    ("cookie", "pouch"),
    ("dress shirt", "shirt"),
    ("dress", "dress"),
    ("skirt", "dress"),
    ("polo", "shirt"),
    ("shirt", "shirt"),
    ("blouse", "shirt"),
    ("hoodie", "hoodie"),
    ("sweater", "hoodie"),
    ("coat", "coat"),
    ("jacket", "coat"),
    ("shorts", "shorts"),
    ("swim", "shorts"),
    ("pants", "pants"),
    ("jeans", "pants"),
    ("leggings", "pants"),
    ("sock", "socks"),
    ("boot", "boot"),
    ("sandal", "slipper"),
    ("slipper", "slipper"),
    ("shoe", "shoe"),
    ("sneaker", "shoe"),
    ("watch", "watch"),
    ("phone charger", "charger"),
    ("charger", "charger"),
    ("charging cable", "cable"),
    ("cable", "cable"),
    ("cord", "cable"),
    ("power bank", "powerbank"),
    ("tablet", "tablet"),
    ("phone", "phone"),
    ("screen protector", "phone"),
    ("case", "phone"),
    ("laptop", "laptop"),
    ("earbud", "earbuds"),
    ("headset", "headset"),
    ("headphone", "headset"),
    ("sound bar", "soundbar"),
    ("speaker", "speaker"),
    ("keyboard", "keyboard"),
    ("mouse", "mouse"),
    ("string light", "lights"),
    ("lamp", "lamp"),
    ("light", "lamp"),
    ("pillow", "pillow"),
    ("cushion", "pillow"),
    ("rug", "rug"),
    ("curtain", "curtain"),
    ("blanket", "folded"),
    ("towel", "folded"),
    ("sheet", "folded"),
    ("duvet", "folded"),
    ("bedding", "folded"),
    ("clock", "clock"),
    ("shelf", "shelf"),
    ("bookcase", "shelf"),
    ("cabinet", "shelf"),
    ("chair", "chair"),
    ("sofa", "chair"),
    ("pot", "pot"),
    ("plant", "pot"),
    ("basket", "basket"),
    ("bag", "basket"),
    ("drink", "bottle"),
];

/// The drawing of a product's kind, which its query names, or its title, or the last step of its category.
pub(super) fn of(product: &Product) -> &'static str {
    let category = product.product_category.rsplit('›').next().unwrap_or_default();
    let texts = [&product.query, category, &product.title];
    let name = texts.into_iter().find_map(kind_of).unwrap_or(PARCEL);
    symbol(name).expect("a test looks for every name")
}

/// The shape of a text that names a kind.
fn kind_of(text: &str) -> Option<&'static str> {
    // A space before each word, and none of its own at the start, so that `tea` is not in `steak`.
    let text = format!(" {}", text.to_lowercase());
    KINDS.iter().find(|(kind, _)| text.contains(&format!(" {kind}"))).map(|(_, shape)| *shape)
}

/// The content of a symbol.
fn symbol(name: &str) -> Option<&'static str> {
    let (_, rest) = SHAPES.split_once(&format!("<symbol id=\"{name}\">"))?;
    rest.split_once("</symbol>").map(|(shape, _)| shape)
}

/// The drawing of a product of no known kind.
#[cfg(test)]
pub(super) fn parcel() -> &'static str {
    symbol(PARCEL).expect("a test looks for every name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_symbol_and_every_symbol_a_kind() {
        for (kind, name) in KINDS {
            assert!(symbol(name).is_some(), "{kind}: {name}");
        }
        let names = SHAPES.split("<symbol id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for name in names.filter(|name| *name != PARCEL) {
            assert!(KINDS.iter().any(|(_, shape)| *shape == name), "{name}");
        }
    }

    #[test]
    fn a_kind_is_named_by_whole_words_in_any_case() {
        assert_eq!(kind_of("Women's Wool Socks"), Some("socks"));
        assert_eq!(kind_of("glass coffee table"), Some("table"));
        assert_eq!(kind_of("ground coffee"), Some("pouch"));
        assert_eq!(kind_of("steak"), None);
    }
}
