//! People who log in by a name and a password.

use crate::client::{Answer, Running, request};
use crate::pages::form_key;
use serde_json::{Value, json};

impl Running {
    fn enter(&self, name: &str, password: &str) -> Answer {
        let form = format!("name={name}&token={password}&next=%2F");
        self.post("/login", &[("Content-Type", "application/x-www-form-urlencoded")], form.as_bytes())
    }

    /// The cookie of somebody who logged in.
    fn cookie(&self, name: &str, password: &str) -> String {
        let answer = self.enter(name, password);
        assert_eq!(answer.status, 303, "{}", answer.text());
        let cookie = answer.head.split_once("set-cookie: ").unwrap().1;
        cookie.split(';').next().unwrap().to_owned()
    }

    /// A form of a page, with the key that the page has.
    fn submit_own(&self, cookie: &str, path: &str, form: &str) -> Answer {
        let page = self.page(cookie, "/account").text();
        self.submit(cookie, path, &format!("form_key={}&{form}", form_key(&page)))
    }

    fn people(&self, method: &str, path: &str, token: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let path = format!("/api/v1/people{path}");
        request(self.address, method, &path, &[("Authorization", &bearer)], body.to_string().as_bytes())
    }

    fn add(&self, name: &str, scope: &str, project: Option<&str>) -> Answer {
        let person = json!({ "name": name, "password": "correct horse", "scope": scope, "project": project });
        self.people("POST", "", &self.token, &person)
    }
}

#[test]
fn people_may_what_they_were_given_until_they_are_removed() {
    let server = Running::start();
    assert_eq!(server.add("Anna", "member", Some("default")).status, 200);
    let bearer = format!("Bearer {}", server.token);
    let other = json!({ "slug": "other" }).to_string();
    server.post("/api/v1/projects", &[("Authorization", &bearer)], other.as_bytes());
    let anna = server.cookie("anna", "correct+horse");
    let home = server.page(&anna, "/");
    assert!(home.text().contains(">anna<") && !home.text().contains("/people"), "{}", home.text());
    let status = |path: &str| server.page(&anna, path).status;
    assert_eq!((status("/projects/default"), status("/projects/other")), (200, 404));
    assert_eq!((status("/people"), status("/projects/default/tokens")), (404, 404));
    let add = "name=bert&password=correct+horse&scope=admin&project=";
    assert_eq!(server.submit_own(&anna, "/people", add).status, 403, "nobody makes themselves more");
    // What stands for her is no token that anybody sees.
    let tokens = server.get("/api/v1/projects/default/tokens").text();
    assert!(!tokens.contains("anna"), "{tokens}");
    let listed = server.people("GET", "", &server.token, &Value::Null).json();
    assert_eq!(listed["people"][0]["name"], "anna");
    assert_eq!(listed["people"][0]["project"], "default");
    assert_eq!(server.people("GET", "", "nobody", &Value::Null).status, 401);
    let gone =
        server.people("DELETE", &format!("/{}", listed["people"][0]["id"]), &server.token, &Value::Null);
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(status("/projects/default"), 303, "she is asked to log in");
    assert_eq!(server.enter("anna", "correct+horse").status, 403);
    assert_eq!(server.add("anna", "read", None).status, 200, "the name is free again");
}

#[test]
fn wrong_passwords_are_refused_and_then_wait() {
    let server = Running::start();
    assert_eq!(server.add("anna", "read", None).status, 200);
    for name in ["anna", "nobody"] {
        for _ in 0..5 {
            let refused = server.enter(name, "wrong+horse");
            assert_eq!(refused.status, 403);
            assert!(refused.text().contains("Nobody is known by that"), "{}", refused.text());
        }
        let waits = server.enter(name, "correct+horse");
        assert_eq!(waits.status, 429, "{name}: {}", waits.text());
    }
    assert_eq!(server.enter("", &server.token).status, 303, "tokens do not wait");
}

#[test]
fn another_password_ends_what_the_old_one_began() {
    let server = Running::start();
    assert_eq!(server.add("anna", "read", None).status, 200);
    let (one, two) = (server.cookie("anna", "correct+horse"), server.cookie("ANNA", "correct+horse"));
    assert_eq!(server.submit_own(&one, "/account", "old=wrong+horse&new=battery+staple").status, 403);
    assert_eq!(server.submit_own(&one, "/account", "old=correct+horse&new=short").status, 400);
    assert_eq!(server.submit_own(&one, "/account", "old=correct+horse&new=battery+staple").status, 303);
    assert_eq!((server.page(&one, "/").status, server.page(&two, "/").status), (303, 303));
    assert_eq!(server.enter("anna", "correct+horse").status, 403);
    server.cookie("anna", "battery+staple");
    let plain =
        "SELECT count(*) FROM person WHERE password LIKE '$argon2id$%' AND password NOT LIKE '%staple%'";
    assert_eq!(server.number(plain), 1);
}

#[test]
fn what_is_no_person_is_refused() {
    let server = Running::start();
    let refused = |person: Value| server.people("POST", "", &server.token, &person).status;
    let person = |name: &str, password: &str, scope: &str, project: Option<&str>| {
        refused(json!({ "name": name, "password": password, "scope": scope, "project": project }))
    };
    assert_eq!(person("", "correct horse", "read", None), 400);
    assert_eq!(person("a\u{7}", "correct horse", "read", None), 400);
    assert_eq!(person("anna", "short", "read", None), 400);
    assert_eq!(person("anna", "correct horse", "report", None), 400);
    assert_eq!(person("anna", "correct horse", "admin", Some("default")), 400);
    assert_eq!(person("anna", "correct horse", "read", Some("no-such")), 404);
    assert_eq!(person("anna", "correct horse", "read", None), 200);
    assert_eq!(person("Anna ", "correct horse", "read", None), 409);
    assert_eq!(server.number("SELECT count(*) FROM person"), 1);
}
