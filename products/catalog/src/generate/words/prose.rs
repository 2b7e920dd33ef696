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

/// The first bullet, which is searched: `{stuff}` is the product with its material.
pub(in super::super) static FIRST_BULLETS: [&str; 5] = [
    "{stuff} by {brand}, made for {use}",
    "made by {brand} for {use}: {stuff}",
    "{stuff} for {use}",
    "our best {stuff} for {use}",
    "the {stuff} that {brand} is known for",
];

/// Bullets that tell a hidden trait, by its form: is, has, for.
pub(in super::super) static HIDDEN_BULLETS: [[&str; 3]; 3] = [
    ["it is also {}", "{} by design", "tested and {}"],
    ["comes with {}", "made with {}", "you also get {}"],
    ["a good choice for {}", "works well for {}", "many customers like it for {}"],
];

/// First sentences of descriptions.
pub(in super::super) static DESCRIPTIONS: [&str; 6] = [
    "{brand} is a small family company and it shows",
    "for anyone who wants good {query} every day",
    "{brand} has worked on {query} like this for years",
    "if you want good {query}, start here",
    "a nice gift for your {person}",
    "a favorite in every {place}",
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
