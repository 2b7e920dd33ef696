//! The page itself: head, figures, charts, trips, and what everything means.

use std::fmt::Write;

use webshop_evaluation::table::escape;
use crate::run::{Results, charts};
use webshop_training::Metric;
use webshop_training::Stage;

/// Colours and strokes of the drawings, light and dark.
const DRAWING_STYLE: &str = include_str!("style.css");
/// The layout of the page.
const PAGE_STYLE: &str = include_str!("page.css");

/// A drawing that can be shown without the page, on a card of its own.
pub(crate) fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('\n').expect("a drawing begins with its tag on a line");
    format!(
        "{open}\n<style>\n{DRAWING_STYLE}</style>\n<rect class=\"card\" width=\"100%\" height=\"100%\" rx=\"10\"/>\n{rest}"
    )
}

/// The whole page.
pub(super) fn page(results: &Results, command: &str) -> String {
    let charts = charts::all(results);
    let charts = match charts.is_empty() {
        true => "<p class=\"soft\">Nothing has been measured yet.</p>\n".into(),
        false => figures(&charts),
    };
    let body = [
        head(results, command),
        tiles(results),
        "<h2>Curves</h2>\n".into(),
        charts,
        trips(results),
        appendix(results),
    ];
    document("webshop: a run", &body.concat())
}

/// A page that needs nothing but itself.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>\n{DRAWING_STYLE}{PAGE_STYLE}\
         </style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

fn head(results: &Results, command: &str) -> String {
    let config = &results.config;
    let mut facts = vec![
        ("loss".to_string(), format!("{} ({})", config.learner.loss, results.loss())),
        ("seed".into(), config.seed.to_string()),
        ("shop".into(), config.catalog.source.clone()),
    ];
    facts.extend(results.fingerprint.iter().map(|(key, value)| (key.replace('_', " "), plain(value))));
    if let Some(last) = results.timings.last() {
        facts.push(("time".into(), format!("{} for {} steps", duration(last.seconds), last.step)));
    }
    let mut html = "<h1>A small Qwen learns to shop</h1>\n".to_string();
    let _ = write!(html, "<code class=\"command\">{}</code>\n<dl class=\"facts\">\n", escape(command));
    for (name, value) in facts {
        let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(&name), escape(&value));
    }
    html + "</dl>\n"
}

/// A JSON value as a person writes it: texts without quotes.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

fn stages(results: &Results) -> Vec<(String, &Stage)> {
    let stages = &results.stages;
    let named = [
        (results.config.model.first_name().to_string(), &stages.random),
        ("after the warm start".into(), &stages.warm_start),
        (format!("after {}", results.loss()), &stages.learned),
    ];
    named.into_iter().filter_map(|(name, stage)| Some((name, stage.as_ref()?))).collect()
}

fn tiles(results: &Results) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let mut html = String::new();
    let mut before: Option<f64> = None;
    for (name, stage) in stages(results) {
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
            escape(&name),
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
    match html.is_empty() {
        true => html,
        false => format!("<div class=\"tiles\">\n{html}</div>\n"),
    }
}

fn figures(charts: &[String]) -> String {
    let figures: String =
        charts.iter().map(|svg| format!("<figure class=\"chart\">\n{svg}</figure>\n")).collect();
    format!(
        "<p class=\"soft\">Where a line has more steps than room, it runs through the means of neighbouring steps, within \
         a band of their extremes.</p>\n<div class=\"charts\">\n{figures}</div>\n"
    )
}

fn trips(results: &Results) -> String {
    let stages = stages(results);
    let n_goals = stages.iter().map(|(_, stage)| stage.trips.len()).max().unwrap_or_default();
    let mut html = String::new();
    for goal in 0..n_goals {
        let told: Vec<(&str, &str)> = stages
            .iter()
            .filter_map(|(name, stage)| Some((name.as_str(), stage.trips.get(goal)?.as_str())))
            .collect();
        // A trip of random weights is noise: it is there for whoever asks.
        let (noise, told) = match told.split_first() {
            Some((first, rest)) if told.len() == 3 => (Some(first), rest),
            _ => (None, told.as_slice()),
        };
        let _ = writeln!(
            html,
            "<section class=\"goal\">\n<h3>Held-out goal {}</h3>\n<div class=\"trips\">",
            goal + 1
        );
        for (name, trip) in told {
            let _ =
                writeln!(html, "<div><h4>{}</h4><pre>{}</pre></div>", escape(name), escape(trip.trim_end()));
        }
        html.push_str("</div>\n");
        if let Some((name, trip)) = noise {
            let trip = escape(trip.trim_end());
            let _ = writeln!(html, "<details><summary>{}</summary><pre>{trip}</pre></details>", escape(name));
        }
        html.push_str("</section>\n");
    }
    match html.is_empty() {
        true => html,
        false => format!("<h2>Whole trips, before and after</h2>\n{html}"),
    }
}

fn appendix(results: &Results) -> String {
    let split = results.config.evaluation.split.to_string();
    let mut html = "<h2>For the record</h2>\n".to_string();
    if let Some(values) = &results.values {
        let _ = writeln!(
            html,
            "<p>V* of {} training goals: mean {:.3}, estimated bias {:.3}; on {:.1} % of them no trip of the reference \
             succeeded.</p>",
            values.goals().len(),
            values.mean_v_star(),
            values.mean_bias(),
            100.0 * values.share_without_success()
        );
    }
    let _ = write!(
        html,
        "<details><summary>Configuration</summary><pre>{}</pre></details>\n<details><summary>What is measured</summary>\
         <table>\n",
        escape(results.config_text.trim_end())
    );
    for metric in Metric::ALL {
        let (tag, meaning) = (metric.tag(&split), metric.meaning().trim());
        let _ = writeln!(html, "<tr><td><code>{}</code></td><td>{}</td></tr>", escape(&tag), escape(meaning));
    }
    html + "</table></details>\n"
}

/// A difference with its sign.
fn signed(points: f64) -> String {
    format!("{points:+.1}").replace('-', "−")
}

/// Seconds as hours, minutes and seconds.
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
    fn durations_read_like_durations() {
        for (seconds, expected) in [(9.4, "9 s"), (605.0, "10 min 5 s"), (7260.0, "2 h 1 min")] {
            assert_eq!(duration(seconds), expected);
        }
    }
}
