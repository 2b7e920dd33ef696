//! Texts that end a completion.

/// Passes text on up to the first stop text, and holds back what may be the beginning of one.
#[derive(Debug)]
pub(super) struct StopFilter {
    /// None is empty.
    stops: Vec<String>,
    held: String,
    is_stopped: bool,
}

impl StopFilter {
    pub(super) fn new(stops: Vec<String>) -> StopFilter {
        StopFilter { stops, held: String::new(), is_stopped: false }
    }

    /// Whether a stop text was found.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Appends a text, and returns what cannot be part of a stop text any more. The stop text that is complete first
    /// ends the text, of several that are complete at once the longest, so that pieces of any length give the same.
    pub(super) fn push(&mut self, text: &str) -> String {
        if self.is_stopped {
            return String::new();
        }
        self.held.push_str(text);
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop).map(|at| (at + stop.len(), at)));
        if let Some((_, at)) = found.min() {
            self.is_stopped = true;
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let n_passed = self.held.len() - self.n_held();
        let rest = self.held.split_off(n_passed);
        std::mem::replace(&mut self.held, rest)
    }

    /// The rest, once no text follows.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// The bytes at the end that may be the beginning of a stop text.
    fn n_held(&self) -> usize {
        let starts = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        let mut begun = starts.filter(|rest| self.stops.iter().any(|stop| stop.starts_with(rest)));
        begun.next().map_or(0, str::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces that come out, the rest last.
    fn pieces(stops: &[&str], texts: &[&str]) -> Vec<String> {
        let mut filter = StopFilter::new(stops.iter().map(|stop| (*stop).to_owned()).collect());
        let mut pieces: Vec<String> = texts.iter().map(|text| filter.push(text)).collect();
        pieces.push(filter.finish());
        pieces
    }

    #[test]
    fn text_before_a_stop_text_passes() {
        assert_eq!(pieces(&[], &["a", "b"]), ["a", "b", ""]);
        assert_eq!(pieces(&["END"], &["a E", "ND b", "c"]), ["a ", "", "", ""]);
        assert_eq!(pieces(&["END"], &["a E", "N", "N"]), ["a ", "", "ENN", ""]);
        assert_eq!(pieces(&["END"], &["a", "EN"]), ["a", "", "EN"]);
        assert_eq!(pieces(&["é!"], &["xé", "!"]), ["x", "", ""]);
    }

    #[test]
    fn the_length_of_pieces_changes_nothing() {
        for stops in [&["abcd", "c"][..], &["bc", "c"], &["c", "abc"], &["zz"], &["aab"]] {
            let text = "xaaabcdzaab";
            let whole = pieces(stops, &[text]).concat();
            let single: Vec<String> = text.chars().map(String::from).collect();
            let single: Vec<&str> = single.iter().map(String::as_str).collect();
            assert_eq!(pieces(stops, &single).concat(), whole, "{stops:?}");
        }
        assert_eq!(pieces(&["bc", "c"], &["abcd"]).concat(), "a");
    }
}
