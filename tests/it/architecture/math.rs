//! No number of a run comes from the system's math library, whose last bits differ from one machine to another.

use super::source::{Token, closing, production_files, production_tokens, tokens};
use super::{CRATES, root};

/// Functions of floats that std leaves to the system. `libm` has them, too. `sqrt` is exact everywhere.
const OF_THE_SYSTEM: [&str; 21] = [
    "acos", "asin", "atan", "atan2", "cbrt", "cos", "cosh", "exp", "exp2", "exp_m1", "hypot", "ln", "ln_1p",
    "log10", "log2", "powf", "sin", "sin_cos", "sinh", "tan", "tanh",
];

/// Files that choose colors or the ticks of an axis, that make the inputs of a check of the GPU's kernels, or that leave the
/// exponential on a GPU to candle.
const EXEMPT: [&str; 4] = [
    "agent/lm/src/ops/gpu/reference_check.rs",
    "serve/src/replay/tokens.rs",
    "training/learning/src/math/exp.rs",
    "training/report/src/run/axis.rs",
];

/// The lines where such a function of a float is called or named. candle's functions of tensors, whose results can be errors
/// and are followed by `?`, are not: those of losses on the CPU are in `training/learning/src/math`.
fn calls(tokens: &[Token]) -> Vec<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let is_call = |at: usize| match (text(at.wrapping_sub(2)), text(at.wrapping_sub(1))) {
        ("f32" | "f64", "::") => true,
        (_, ".") => text(at + 1) == "(" && text(closing(tokens, at + 1)) != "?",
        _ => false,
    };
    let found = (0..tokens.len()).filter(|at| OF_THE_SYSTEM.contains(&text(*at)) && is_call(*at));
    found.map(|at| tokens[at].line).collect()
}

#[test]
fn no_number_of_a_run_comes_from_the_systems_math_library() {
    let (mut n_files, mut found) = (0, Vec::new());
    for krate in CRATES {
        for file in production_files(&root().join(krate.folder)) {
            let place = file.strip_prefix(root()).expect("below").display().to_string();
            n_files += 1;
            if !EXEMPT.contains(&place.as_str()) {
                let lines = calls(&production_tokens(&file));
                found.extend(lines.into_iter().map(|line| format!("{place}:{line}")));
            }
        }
    }
    assert!(n_files > 300, "only {n_files} files were read");
    assert!(found.is_empty(), "use `libm` here:\n{}", found.join("\n"));
}

#[test]
fn calls_and_names_of_its_functions_are_found() {
    let source = "let a = x.ln();\nlet b = y.map(f64::exp);\nlet c = libm::exp(x);\nlet d = tensor.exp()?;\nlet e = x\n.powf(f(2.0));\n";
    assert_eq!(calls(&tokens(source)), [1, 2, 6]);
}
