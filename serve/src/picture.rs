//! Drawn pictures of products, which have no photographs.
//!
//! [`svg`] draws a product by its kind, its color and its ASIN: the kind chooses a shape, the words of its title
//! and options the color, and the ASIN the background. A drawing depends on nothing else, so it is always the
//! same. The shapes are the symbols of `assets/shapes.svg`.

mod color;
mod shape;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use webshop_products::{Catalog, Digest, Product, ProductId};

/// What the addresses of drawings begin with.
pub(crate) const FOLDER: &str = "/pictures/";

/// The address of a product's drawing, in a color unless that is empty.
pub(crate) fn address(id: &ProductId, color: &str) -> String {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let query = if color.is_empty() { String::new() } else { format!("?color={}", encoded(color)) };
    format!("{FOLDER}{}.svg{query}", encoded(id.as_str()))
}

/// The drawing at an address that [`address`] makes; `None` for other addresses, and for unknown products.
pub(crate) fn at(catalog: &Catalog, address: &str) -> Option<String> {
    let (id, query) = address.strip_prefix(FOLDER)?.split_once(".svg")?;
    let decoded = |text| percent_decode_str(text).decode_utf8().ok();
    let color = match query.strip_prefix("?color=") {
        Some(color) => Some(decoded(color)?),
        None => None,
    };
    Some(svg(catalog.get(catalog.find(&decoded(id)?)?), color.as_deref()))
}

/// A document with `other` in the place of the address of each drawing, which it is given. The products must be those
/// of `catalog`.
pub(crate) fn with_addresses(
    document: &str,
    catalog: &Catalog,
    mut other: impl FnMut(String) -> String,
) -> String {
    let begin = format!(" src=\"{FOLDER}");
    let mut parts = document.split(&begin);
    let mut changed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('"').expect("the value of an attribute ends");
        let drawing = at(catalog, &format!("{FOLDER}{name}")).expect("a page shows products of its shop");
        changed += &format!(" src=\"{}\"{rest}", other(drawing));
    }
    changed
}

/// A drawing as an address that holds it.
pub(crate) fn data_address(drawing: &str) -> String {
    format!("data:image/svg+xml,{}", utf8_percent_encode(drawing, NON_ALPHANUMERIC))
}

/// The first value that names a color.
pub(crate) fn color_among<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    values.find(|value| color::named(value).is_some())
}

/// The drawing of a product; `chosen` is a selected value that may name a color.
pub(crate) fn svg(product: &Product, chosen: Option<&str>) -> String {
    let draw = Digest::of(product.id.as_str().as_bytes()).number();
    let color =
        chosen.and_then(color::named).or_else(|| own_color(product, draw)).unwrap_or(color::drawn(draw));
    let shape = shape::of(product);
    let (hue, x, y) = (draw % 360, 40 + draw / 360 % 120, 30 + draw / 43_200 % 140);
    let mirrored = if draw >> 63 == 0 { "" } else { " transform=\"matrix(-1 0 0 1 200 0)\"" };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-20 -20 240 240\">\n\
         <rect x=\"-20\" y=\"-20\" width=\"240\" height=\"240\" fill=\"hsl({hue},32%,93%)\"/>\n\
         <circle cx=\"{x}\" cy=\"{y}\" r=\"92\" fill=\"hsl({hue},38%,87%)\"/>\n\
         <ellipse cx=\"100\" cy=\"180\" rx=\"72\" ry=\"9\" fill=\"#1b2030\" fill-opacity=\".12\"/>\n\
         <g color=\"{color}\" fill=\"currentColor\" stroke=\"#1b2030\" stroke-opacity=\".45\" stroke-width=\"3\" \
         stroke-linejoin=\"round\" stroke-linecap=\"round\"{mirrored}>{shape}</g>\n</svg>\n"
    )
}

/// The color that the title names, else one that an option offers.
fn own_color(product: &Product, draw: u64) -> Option<&'static str> {
    let groups = product.options.iter().filter(|group| group.name.contains("color"));
    let values = groups.flat_map(|group| &group.values);
    let offered: Vec<&str> = values.filter_map(|value| color::named(&value.text)).collect();
    color::named(&product.title).or_else(|| match offered.len() as u64 {
        0 => None,
        n => Some(offered[(draw % n) as usize]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_products::{EmbeddedCatalog, RawData, Seed};

    fn catalog() -> Catalog {
        Catalog::from_raw(&RawData::embedded(EmbeddedCatalog::Hundred), Seed(0)).expect("an embedded catalog")
    }

    #[test]
    fn every_kind_of_the_generated_shop_has_a_shape_of_its_own() {
        let catalog = catalog();
        let parcels = catalog.products().iter().filter(|product| shape::of(product) == shape::parcel());
        assert_eq!(parcels.count(), 0);
    }

    #[test]
    fn a_drawing_follows_kind_color_and_asin() {
        let catalog = catalog();
        let product = catalog.products().iter().find(|product| &*product.query == "women's wool socks");
        let product = product.expect("the catalog has socks").clone();
        let red = svg(&product, Some("matte red 4"));
        assert_eq!(red, svg(&product, Some("red")));
        assert!(red.contains("color=\"#c8333a\""), "{red}");
        assert_ne!(red, svg(&product, Some("navy")));
        assert_eq!(svg(&product, Some("xl")), svg(&product, None));
        let address = address(&product.id, "matte red 4");
        assert_eq!(at(&catalog, &address).as_ref(), Some(&red), "{address}");
        assert_eq!(at(&catalog, &address.replace(".svg", "0.svg")), None);
        let other = Product { id: ProductId::new("B000000001").expect("short"), ..product };
        assert_ne!(red, svg(&other, Some("red")));
    }
}
