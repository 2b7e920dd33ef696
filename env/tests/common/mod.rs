//! What the tests of the shop share.

use webshop_env::Session;

/// Everything a session holds but how many steps were taken.
pub fn without_steps(session: &Session) -> serde_json::Value {
    let mut json = serde_json::to_value(session).expect("a session is data");
    json.as_object_mut().expect("with named fields").remove("steps").expect("one of them the count");
    json
}
