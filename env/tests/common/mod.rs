//! Helpers of the shop's tests.

use webshop_env::Session;

/// The session as JSON without its number of steps.
pub(crate) fn without_steps(session: &Session) -> serde_json::Value {
    let mut json = serde_json::to_value(session).expect("a session is data");
    json.as_object_mut().expect("with named fields").remove("steps").expect("one of them the count");
    json
}
