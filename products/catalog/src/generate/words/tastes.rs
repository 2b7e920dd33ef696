//! Options of groceries; see [`super::options`].

use super::Group;

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
    heads: &["4 oz", "8 oz", "16 oz", "2 lb", "5 lb", "1 kilo", "sampler"],
    forms: &["{} (pack of 1)", "{} (pack of 2)", "{} (pack of 6)", "{} (pack of 12)"],
    is_ordered: true,
    phrases: &["in {}", "weight {}", "the weight should be {}", "{} bag"],
};
