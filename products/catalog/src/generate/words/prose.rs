//! Sentences: how customers ask and how sellers praise.
//!
//! `{item}` is replaced by the product with its required traits, `{choice}` by the options.

/// Requests that name the choices, if any, at their end.
pub(in super::super) static REQUESTS: [&str; 34] = [
    "i am looking for {item}",
    "i need {item}",
    "find me {item}",
    "can you find {item} for me",
    "i want to buy {item}",
    "please get me {item}",
    "show me {item}",
    "looking for {item}",
    "i would like {item}",
    "my {person} wants {item}",
    "do you have {item}",
    "help me find {item}",
    "i am shopping for {item}",
    "please order {item}",
    "my old one broke and now i need {item}",
    "my {person} has a birthday soon and i want to give {item}",
    "hello, i am trying to find {item}",
    "i really need {item} before the weekend",
    "we are moving to a new place and need {item}",
    "i have been searching all day for {item}",
    "where can i get {item}",
    "what i want is {item}",
    "i saw {item} at a friend's place and want the same",
    "{item}",
    "{item} please",
    "buy {item} for my {person}",
    "let us find {item}",
    "i am after {item}",
    "would you look for {item}",
    "for my {place} i need {item}",
    "i am tired of my old one, find {item}",
    "time to get {item} for the {place}",
    "i am thinking of {item}",
    "you must have {item} somewhere",
];

/// Requests that begin with the choices.
pub(in super::super) static CHOICE_FIRST: [&str; 6] = [
    "{choice}, i need {item}",
    "{choice}, and it has to be {item}",
    "{choice}, that is how i want {item}",
    "i prefer it {choice}, please find {item}",
    "make it {choice}, i am looking for {item}",
    "it has to come {choice}, so show me {item}",
];

/// Ends of requests; most have none.
pub(in super::super) static ENDINGS: [&str; 3] = [" thanks", " thank you", " if you can"];

pub(in super::super) static PERSONS: [&str; 8] =
    ["sister", "brother", "husband", "wife", "daughter", "son", "mother", "father"];

pub(in super::super) static PLACES: [&str; 6] =
    ["bedroom", "office", "kitchen", "garage", "cabin", "hallway"];

/// What follows a coined word in a title.
pub(in super::super) static SERIES: [&str; 6] = ["series", "collection", "line", "edition", "club", "studio"];

pub(in super::super) static TECHNOLOGIES: [&str; 10] = [
    "technology",
    "system",
    "formula",
    "craft",
    "quality",
    "grade",
    "process",
    "method",
    "standard",
    "blend",
];

pub(in super::super) static HUES: [&str; 8] =
    ["tone", "hue", "shade", "tint", "look", "accent", "tone on tone", "color way"];

pub(in super::super) static LOOKS: [&str; 24] = [
    "nordic", "retro", "minimal", "rustic", "classic", "modern", "playful", "urban", "coastal", "boho",
    "vintage", "sleek", "timeless", "bold", "graceful", "sporty", "artful", "cozy", "refined", "cheerful",
    "country", "nautical", "tropical", "art deco",
];

pub(in super::super) static DESIGNS: [&str; 6] = ["design", "style", "look", "version", "model", "theme"];

pub(in super::super) static EXTRAS: [&str; 24] = [
    "gift box",
    "carry pouch",
    "user guide",
    "storage tin",
    "spare parts",
    "thank you card",
    "travel bag",
    "sample pack",
    "bonus sticker",
    "care leaflet",
    "recipe book",
    "cleaning cloth",
    "measuring spoon",
    "dust bag",
    "ribbon",
    "starter kit",
    "gift wrap",
    "warranty card",
    "tool kit",
    "poster",
    "key ring",
    "hanging loop",
    "paper sleeve",
    "tote",
];

pub(in super::super) static EDITIONS: [&str; 6] =
    ["edition", "release", "upgrade", "version", "new arrival", "season"];

pub(in super::super) static SITES: [&str; 12] = [
    "dorm", "studio", "camper", "patio", "school", "gym", "hotel", "boat", "workshop", "nursery", "attic",
    "balcony",
];

/// The first bullet, which is searched: `{stuff}` is the product with its material.
pub(in super::super) static FIRST_BULLETS: [&str; 6] = [
    "{stuff} by {brand}, made for {use}",
    "made by {brand} for {use}",
    "{brand} had {use} in mind",
    "our best for {use}",
    "this is what {brand} is known for",
    "think of {use}: {brand} did",
];

/// Bullets that tell a trait, by its form: is, has, for.
pub(in super::super) static TRAIT_BULLETS: [[&str; 6]; 3] = [
    [
        "it is also {}",
        "{} by design",
        "tested and {}",
        "{}, as it should be",
        "truly {}",
        "{}: no compromise",
    ],
    [
        "comes with {}",
        "made with {}",
        "you also get {}",
        "{} of the best kind",
        "{} that lasts",
        "new: {} this year",
    ],
    [
        "a good choice for {}",
        "works well for {}",
        "many customers like it for {}",
        "ideal for {}",
        "think of {} and order",
        "for {} and more",
    ],
];

/// Bullets that tell a part `{part}` and its make `{make}`, and not in one phrase.
pub(in super::super) static SCATTERED_BULLETS: [&str; 4] = [
    "its {part}: nothing but {make}",
    "{make} was chosen here for the {part}",
    "look at the {part}, all in {make}",
    "we use {make} where it counts, in the {part}",
];

/// Sentences of descriptions.
pub(in super::super) static DESCRIPTIONS: [&str; 12] = [
    "{brand} is a small family company and it shows",
    "for anyone who wants good {query} every day",
    "{brand} has worked on things like this for years and still learns",
    "if you want something good, start here and take your time",
    "a nice gift for your {person}",
    "a favorite in every {place}",
    "every piece is checked by hand before it leaves our house",
    "write to us whenever something is not as you hoped",
    "we ship within two days and take anything back within thirty",
    "made for people who look twice before they choose",
    "the {place} will never be the same again",
    "designed in a small town by the sea, loved around the world",
];

/// Sentences on money, in the words of price limits; so a search for a whole request, limit included, finds
/// them too.
pub(in super::super) static PRICE_REMARKS: [&str; 3] = [
    "the price is lower than {limit}.00 dollars, so keep {limit}.00 dollars for a lower price elsewhere",
    "free delivery from {limit}.00 dollars, and a price lower than most: {limit}.00 dollars go far",
    "sold elsewhere at a price of {limit}.00 dollars, here lower than {limit}.00 dollars",
];

/// What customers are quoted with, in the words that others ask with; so a search for a whole request
/// finds quotes as well as products.
pub(in super::super) static QUOTES: [&str; 20] = [
    "my old one broke and this is better",
    "a birthday gift for my {person}",
    "my {person} wants another",
    "i really need more of them",
    "just in time for the weekend",
    "we are moving to a new place and took it with us",
    "i have been searching all day for this",
    "i saw it at a friend's place",
    "i am tired of looking, this is the one",
    "what i want for the {place}",
    "please get more",
    "i would like to order again",
    "time to buy another",
    "my {person} is after a second one",
    "hello from the {place}",
    "you must have it",
    "can you find a better one, i did not",
    "that is how i prefer it",
    "let my {person} show you",
    "thank you for the help",
];

/// Bullets about the choices.
pub(in super::super) static CHOICE_BULLETS: [&str; 3] =
    ["choose your {} before you order", "sold in more than one {}", "pick the {} that you like"];
