//! `/openapi.json`: the addresses of all interfaces as an OpenAPI document.

use axum::response::{IntoResponse, Response};

use crate::http::{self, Routes};

/// The document. It is written by hand; a test compares its paths with the routes.
const DOCUMENT: &str = include_str!("../openapi.json");

/// The route of the document.
pub(crate) fn routes() -> Routes {
    Routes::default().get("/openapi.json", document)
}

async fn document() -> Response {
    ([http::JSON], DOCUMENT).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_the_paths_of_the_routes() {
        let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let documented: BTreeSet<(&str, &str)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods").keys();
                methods.map(|method| (method.as_str(), path.as_str()))
            })
            .collect();
        let routes = crate::server::routes().paths;
        assert_eq!(documented, routes.into_iter().collect());
        assert!(document["info"]["version"].as_str().expect("a version").starts_with("1."));
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let mut references = DOCUMENT.split("\"$ref\": \"#").skip(1).peekable();
        assert!(references.peek().is_some(), "there are references");
        for reference in references {
            let target = reference.split('"').next().expect("a pointer");
            assert!(document.pointer(target).is_some(), "{target}");
        }
    }
}
