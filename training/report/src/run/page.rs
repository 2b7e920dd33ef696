//! The HTML page of a run: header, statistics, charts, episodes, and the definitions of the metrics.

use std::fmt::Write;

use webshop_evaluation::table::escape_html;
use webshop_training::metrics::Metric;
use webshop_training::Evaluation;

use crate::run::charts;
use crate::run::results::Results;

/// Colors and strokes of the drawings in light and dark mode.
const DRAWING_STYLE: &str = include_str!("style.css");
/// The layout of the page.
const PAGE_STYLE: &str = include_str!("page.css");

/// A drawing with its style and background, for a file of its own.
pub(crate) fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('\n').expect("the opening tag of a drawing has a line of its own");
    format!(
        "{open}\n<style>\n{DRAWING_STYLE}</style>\n<rect class=\"card\" width=\"100%\" height=\"100%\" rx=\"10\"/>\n{rest}"
    )
}

/// The page of a run.
pub(super) fn page(results: &Results, command: &str) -> String {
    let charts = charts::all(results);
    let charts = if charts.is_empty() {
        "<p class=\"soft\">No metrics recorded yet.</p>\n".into()
    } else {
        figures(&charts)
    };
    let body = [
        header(results, command),
        tiles(results),
        "<h2>Curves</h2>\n".into(),
        charts,
        episodes(results),
        appendix(results),
    ];
    document("webshop: training run", &body.concat())
}

/// An HTML document with the style inline.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>\n{DRAWING_STYLE}{PAGE_STYLE}\
         </style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape_html(title)
    )
}

/// Title, command and properties of the run.
fn header(results: &Results, command: &str) -> String {
    let config = &results.config;
    let mut facts = vec![
        ("loss".to_string(), format!("{} ({})", config.rl.loss.kind(), results.loss())),
        ("seed".into(), config.seed.to_string()),
        ("shop".into(), config.catalog.source.clone()),
    ];
    facts.extend(results.fingerprint.iter().map(|(key, value)| (key.replace('_', " "), json_text(value))));
    if let Some(last) = results.timings.last() {
        facts.push(("time".into(), format!("{} for {} steps", duration(last.seconds), last.step)));
    }
    let mut html = "<h1>A small Qwen learns to shop</h1>\n".to_string();
    let _ = write!(html, "<code class=\"command\">{}</code>\n<dl class=\"facts\">\n", escape_html(command));
    for (name, value) in facts {
        let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape_html(&name), escape_html(&value));
    }
    html + "</dl>\n"
}

/// A JSON value as text; strings without quotes.
fn json_text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// The evaluations of the run with their names: initial model, warm start, trained model.
fn evaluations(results: &Results) -> Vec<(String, &Evaluation)> {
    let stages = &results.stages;
    let named = [
        (results.config.model.first_name().to_string(), &stages.random),
        ("after the warm start".into(), &stages.warm_start),
        (format!("after {}", results.loss()), &stages.learned),
    ];
    named.into_iter().filter_map(|(name, stage)| Some((name, stage.as_ref()?))).collect()
}

/// One tile of statistics for each evaluation.
fn tiles(results: &Results) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let mut html = String::new();
    let mut before: Option<f64> = None;
    for (name, stage) in evaluations(results) {
        let figures = &stage.summary;
        let gain =
            before.map(|before| format!(", {} points", signed(100.0 * (figures.success_rate - before))));
        before = Some(figures.success_rate);
        let ([success_low, success_high], [score_low, score_high]) =
            (figures.success_ci95, figures.score_ci95);
        let _ = writeln!(
            html,
            "<div class=\"tile\"><div class=\"name\">{}</div><div class=\"big\">{} %</div><div class=\"small\">success, \
             {} to {} %{}<br>score {} ({} to {})<br>{} {} goals, step {}</div></div>",
            escape_html(&name),
            percent(figures.success_rate),
            percent(success_low),
            percent(success_high),
            gain.unwrap_or_default(),
            percent(figures.score),
            percent(score_low),
            percent(score_high),
            figures.episodes,
            results.config.evaluation.split,
            stage.step
        );
    }
    if html.is_empty() { html } else { format!("<div class=\"tiles\">\n{html}</div>\n") }
}

/// The charts in a grid.
fn figures(charts: &[String]) -> String {
    let figures: String =
        charts.iter().map(|svg| format!("<figure class=\"chart\">\n{svg}</figure>\n")).collect();
    format!(
        "<p class=\"soft\">A line with too many steps runs through averages of neighboring steps; the band is their \
         range.</p>\n<div class=\"charts\">\n{figures}</div>\n"
    )
}

/// Whole episodes of the same goals in each evaluation.
fn episodes(results: &Results) -> String {
    let evaluations = evaluations(results);
    let n_goals = evaluations.iter().map(|(_, stage)| stage.episodes.len()).max().unwrap_or_default();
    let mut html = String::new();
    for goal in 0..n_goals {
        let texts: Vec<(&str, &str)> = evaluations
            .iter()
            .filter_map(|(name, stage)| Some((name.as_str(), stage.episodes.get(goal)?.as_str())))
            .collect();
        // The episode of the initial model is mostly noise, so it is collapsed.
        let (initial, others) = match texts.split_first() {
            Some((first, rest)) if texts.len() == 3 => (Some(first), rest),
            _ => (None, texts.as_slice()),
        };
        let _ = writeln!(
            html,
            "<section class=\"goal\">\n<h3>Held-out goal {}</h3>\n<div class=\"episodes\">",
            goal + 1
        );
        for (name, text) in others {
            let text = escape_html(text.trim_end());
            let _ = writeln!(html, "<div><h4>{}</h4><pre>{text}</pre></div>", escape_html(name));
        }
        html.push_str("</div>\n");
        if let Some((name, text)) = initial {
            let text = escape_html(text.trim_end());
            let _ = writeln!(
                html,
                "<details><summary>{}</summary><pre>{text}</pre></details>",
                escape_html(name)
            );
        }
        html.push_str("</section>\n");
    }
    if html.is_empty() { html } else { format!("<h2>Episodes before and after training</h2>\n{html}") }
}

/// V* statistics, the configuration, and the definitions of the metrics.
fn appendix(results: &Results) -> String {
    let split = results.config.evaluation.split.to_string();
    let mut html = "<h2>Reproduction</h2>\n".to_string();
    if let Some(values) = &results.values {
        let _ = writeln!(
            html,
            "<p>V* of {} training goals: mean {:.3}, estimated bias {:.3}; for {:.1} % of them no episode of the reference policy \
             succeeded.</p>",
            values.goals().len(),
            values.mean_v_star(),
            values.mean_bias(),
            100.0 * values.share_without_success()
        );
    }
    let _ = write!(
        html,
        "<details><summary>Configuration</summary><pre>{}</pre></details>\n<details><summary>Metrics</summary>\
         <table>\n",
        escape_html(results.config_text.trim_end())
    );
    for metric in Metric::ALL {
        let (tag, meaning) = (metric.tag(&split), metric.meaning().trim());
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td></tr>",
            escape_html(&tag),
            escape_html(meaning)
        );
    }
    html + "</table></details>\n"
}

/// A difference with its sign.
fn signed(points: f64) -> String {
    format!("{points:+.1}").replace('-', "−")
}

/// A duration in hours, minutes and seconds, the largest two units.
fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use crate::run::page::duration;

    #[test]
    fn durations_are_formatted_with_units() {
        for (seconds, expected) in [(9.4, "9 s"), (605.0, "10 min 5 s"), (7260.0, "2 h 1 min")] {
            assert_eq!(duration(seconds), expected);
        }
    }
}
