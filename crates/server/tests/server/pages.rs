//! Pages: for those who logged in, of their projects, with nothing of a stranger's in them that browsers obey.

use crate::client::{Answer, Running, request};
use backtrail_testkit::fixtures;

impl Running {
    /// Logs in, and returns the cookie.
    pub(crate) fn log_in(&self) -> String {
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let answer = self.post("/login", &form, format!("token={}", self.token).as_bytes());
        assert_eq!(answer.status, 303, "{}", answer.text());
        let cookie = answer.head.lines().find(|line| line.starts_with("set-cookie:")).unwrap().to_owned();
        assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
        let cookie = cookie.split_once(':').unwrap().1.split(';').next().unwrap();
        cookie.trim().to_owned()
    }

    pub(crate) fn page(&self, cookie: &str, path: &str) -> Answer {
        request(self.address, "GET", path, &[("Cookie", cookie)], b"")
    }

    pub(crate) fn submit(&self, cookie: &str, path: &str, form: &str) -> Answer {
        let headers = [("Cookie", cookie), ("Content-Type", "application/x-www-form-urlencoded")];
        self.post(path, &headers, form.as_bytes())
    }
}

pub(crate) fn form_key(page: &str) -> &str {
    page.split_once("name=\"form_key\" value=\"").unwrap().1.split('"').next().unwrap()
}

#[test]
fn strangers_are_asked_to_log_in() {
    let server = Running::start();
    for path in ["/", "/projects/default", "/projects/default/issues/1", "/projects/none"] {
        let answer = server.page("", path);
        assert_eq!(answer.status, 303, "{path}");
        assert!(answer.head.contains("location: /login?next=/"), "{}", answer.head);
    }
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let with = |token: &str| server.post("/login", &form, format!("token={token}").as_bytes()).status;
    assert_eq!(with("wrong"), 403);
    assert_eq!(with(&server.key), 403, "clients' keys read nothing");
    // Browsers leave out a tab or a line's end, so that two slashes follow each other.
    for next in [
        "//evil.example/",
        "/%09/evil.example/",
        "/%0A/evil.example/",
        "/%5Cevil.example/",
        "%20//evil.example/",
    ] {
        let elsewhere = format!("token={}&next={next}", server.token);
        let answer = server.post("/login", &form, elsewhere.as_bytes());
        assert!(answer.head.contains("location: /\r\n"), "{next}: {}", answer.head);
    }
}

#[test]
fn what_people_see() {
    let server = Running::start();
    let report = std::fs::read(fixtures().join("sample/reports/null-member.ips")).unwrap();
    let id = server.send("/api/1/reports/", &report).json()["ids"][0].as_str().unwrap().to_owned();
    server.settle();
    let cookie = server.log_in();
    assert!(server.page(&cookie, "/").text().contains("/projects/default"));
    let issues = server.page(&cookie, "/projects/default").text();
    assert!(issues.contains("Null pointer access") && issues.contains("<svg"), "{issues}");
    let path = "/projects/default/issues/1";
    let issue = server.page(&cookie, path);
    assert!(issue.head.contains("content-security-policy: default-src 'none'"), "{}", issue.head);
    let text = issue.text();
    assert!(text.contains("Why these reports are one issue") && text.contains("Likely causes"), "{text}");
    assert!(!text.contains("<script"), "{text}");
    let stacks = server.page(&cookie, "/projects/default/issues/1/stacks").text();
    assert!(
        stacks.contains("<ul class=\"icicle\">") && stacks.contains("One report has been read"),
        "{stacks}"
    );
    assert_eq!(server.page(&cookie, "/projects/default/issues/77/stacks").status, 404);
    let report = server.page(&cookie, &format!("/projects/default/reports/{id}")).text();
    assert!(report.contains("read at 0x10"), "{report}");
    for (path, has) in
        [("missing", "reports that wait"), ("apart", "Without an issue"), ("setup", "sentry_sdk.init")]
    {
        let page = server.page(&cookie, &format!("/projects/default/{path}"));
        assert!(page.status == 200 && page.text().contains(has), "{path}: {}", page.text());
    }
    assert_eq!(server.page(&cookie, "/projects/none").status, 404);
    // A form counts only with what its page has.
    assert_eq!(server.submit(&cookie, path, "form_key=guess&state=resolved").status, 403);
    let good = format!("form_key={}&state=resolved", form_key(&text));
    assert_eq!(server.submit(&cookie, path, &good).status, 303);
    assert!(server.page(&cookie, "/projects/default").text().contains("There are none."));
    assert_eq!(server.submit(&cookie, "/logout", &good).status, 303);
    assert_eq!(server.page(&cookie, "/").status, 303, "the session is no more");
}

#[test]
fn markup_of_strangers_stays_text() {
    let server = Running::start();
    let evil = "<script>alert(1)</script>\u{202e}\"'><img src=x onerror=alert(1)>";
    let event = serde_json::json!({
        "event_id": "9ec79c33ec9942ab8353589fcb2e04dc",
        "release": evil,
        "platform": "python",
        "contexts": { "os": { "name": evil, "version": evil }, "device": { "model": evil } },
        "exception": { "values": [{ "type": evil, "value": evil, "stacktrace": { "frames": [
            { "function": evil, "module": evil, "filename": evil, "lineno": 1, "in_app": true } ] } }] },
    });
    assert_eq!(server.send("/api/1/store/", event.to_string().as_bytes()).status, 200);
    server.settle();
    let cookie = server.log_in();
    let mut shown = 0;
    for path in ["", "/issues/1", "/reports/9ec79c33ec9942ab8353589fcb2e04dc", "/apart", "/missing"] {
        let page = server.page(&cookie, &format!("/projects/default{path}"));
        let text = page.text();
        assert!(
            !text.contains("<script") && !text.contains("<img") && !text.contains('\u{202e}'),
            "{path}: {text}"
        );
        shown += usize::from(text.contains("&lt;script&gt;"));
    }
    assert!(shown > 1, "the text is shown, as text");
    let report = server.page(&cookie, "/projects/default?text=9EC79C33-EC99-42AB-8353-589FCB2E04DC");
    let page = "location: /projects/default/reports/9ec79c33ec9942ab8353589fcb2e04dc";
    assert!(report.status == 303 && report.head.contains(page), "a report's id leads to it: {}", report.head);
    assert_eq!(server.page(&cookie, "/projects/default?text=9ec79c33ec9942ab8353589fcb2e04dd").status, 200);
    let query = server.page(&cookie, "/projects/default?text=%22%3E%3Cscript%3E").text();
    assert!(!query.contains("<script"), "{query}");
}

#[test]
fn an_administrator_makes_projects_keys_and_tokens_on_pages() {
    let server = Running::start();
    let cookie = server.log_in();
    let projects = server.page(&cookie, "/").text();
    let key = form_key(&projects).to_owned();
    let make = |slug: &str, name: &str| format!("form_key={key}&slug={slug}&name={name}");
    assert_eq!(server.submit(&cookie, "/projects", "form_key=wrong&slug=weather&name=").status, 403);
    assert_eq!(server.submit(&cookie, "/projects", &make("Weather", "")).status, 400);
    let made = server.submit(&cookie, "/projects", &make("weather", "The+Weather"));
    assert!(made.status == 303 && made.head.contains("location: /projects/weather/setup"), "{}", made.head);
    assert_eq!(server.submit(&cookie, "/projects", &make("weather", "")).status, 409);
    let setup = server.page(&cookie, "/projects/weather/setup").text();
    assert!(setup.contains("The Weather") && setup.contains("/projects/weather/tokens"), "{setup}");
    let path = "/projects/weather/tokens";
    let form = |scope: &str| format!("form_key={key}&scope={scope}&note=%3Cb%3EAnna");
    assert_eq!(server.submit(&cookie, path, &form("admin")).status, 400);
    let made = server.submit(&cookie, path, &form("member")).text();
    assert!(made.contains("&lt;b&gt;Anna") && !made.contains("<b>"), "{made}");
    let token = made.split_once("shown this once: <code>").unwrap().1.split('<').next().unwrap();
    // It is good for this project, and not for these pages.
    let log_in = |token: &str| {
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        server.post("/login", &form, format!("token={token}").as_bytes())
    };
    let answer = log_in(token);
    let member = answer.head.lines().find(|line| line.starts_with("set-cookie:")).unwrap();
    let member = member.split_once(':').unwrap().1.split(';').next().unwrap().trim().to_owned();
    let seen = server.page(&member, "/").text();
    assert!(
        seen.contains("The Weather") && !seen.contains("Default") && !seen.contains("New project"),
        "{seen}"
    );
    assert_eq!(server.page(&member, path).status, 404);
    assert_eq!(server.page(&member, "/projects/default").status, 404);
    let own = form_key(&seen).to_owned();
    assert_eq!(server.submit(&member, "/projects", &format!("form_key={own}&slug=mine&name=")).status, 403);
    assert_eq!(server.submit(&member, path, &format!("form_key={own}&scope=read&note=")).status, 403);
    let list = server.page(&cookie, path).text();
    assert!(!list.contains(token), "a token is shown once");
    let revoke =
        list.split("action=\"").find(|part| part.contains("/revoke\"") && part.contains("Revoke member"));
    let revoke = revoke.unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(server.submit(&member, &revoke, &format!("form_key={own}")).status, 403);
    assert_eq!(server.submit(&cookie, &revoke, &format!("form_key={key}")).status, 303);
    assert_eq!(log_in(token).status, 403);
    assert_eq!(server.page(&member, "/projects/weather").status, 303, "its sessions end with it");
}

impl Running {
    /// Sends files by the form of the page for uploads.
    fn send_form(&self, cookie: &str, key: &str, files: &[(&str, &[u8])]) -> Answer {
        let mut body = format!("--XX\r\nContent-Disposition: form-data; name=\"form_key\"\r\n\r\n{key}\r\n")
            .into_bytes();
        for (name, bytes) in files {
            let head = format!(
                "--XX\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\r\n"
            );
            body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
        }
        body.extend(b"--XX--\r\n");
        let headers = [("Cookie", cookie), ("Content-Type", "multipart/form-data; boundary=XX")];
        self.post("/projects/default/upload", &headers, &body)
    }
}

#[test]
fn files_of_a_form_are_symbols_reports_or_neither() {
    let server = Running::start();
    let sample = |path: &str| std::fs::read(fixtures().join("sample").join(path)).unwrap();
    let dsym = sample("symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather");
    let report = sample("reports/null-member.ips");
    let cookie = server.log_in();
    let page = server.page(&cookie, "/projects/default/upload").text();
    let key = form_key(&page).to_owned();
    assert!(page.contains("type=\"file\"") && page.contains("multiple"), "{page}");
    assert_eq!(server.send_form("", &key, &[("a", &report)]).status, 303, "nobody");
    assert_eq!(server.send_form(&cookie, "guess", &[("a", &report)]).status, 403);
    assert_eq!(server.send_form(&cookie, &key, &[]).status, 400);
    let files: [(&str, &[u8]); 4] =
        [("<b>.ips", &report), ("Weather", &dsym), ("cat.png", b"\x89PNG\r\n\x1a\n"), ("empty", b"")];
    let done = server.send_form(&cookie, &key, &files);
    let text = done.text();
    assert_eq!(done.status, 200, "{text}");
    assert!(text.contains("&lt;b&gt;.ips") && text.contains("a report: "), "{text}");
    assert!(text.contains("Weather arm64 "), "the image is named: {text}");
    assert_eq!(text.matches("neither symbols nor a report").count(), 2, "{text}");
    server.settle();
    let issues = server.page(&cookie, "/projects/default").text();
    assert!(issues.contains("Null pointer access"), "{issues}");
    let link = text.split("href=\"").find(|part| part.starts_with("/projects/default/reports/")).unwrap();
    let report = server.page(&cookie, link.split('"').next().unwrap()).text();
    assert!(report.contains("read at 0x10") && report.contains("Forecast"), "with names: {report}");
}

#[test]
fn hangs_are_one_picture() {
    let server = Running::start();
    let cookie = server.log_in();
    assert!(server.page(&cookie, "/projects/default/hangs").text().contains("There are none"));
    for name in ["watchdog", "null-member"] {
        let report = std::fs::read(fixtures().join(format!("sample/reports/{name}.ips"))).unwrap();
        assert_eq!(server.send("/api/1/reports/", &report).status, 200);
    }
    server.settle();
    let page = server.page(&cookie, "/projects/default/hangs").text();
    assert!(page.contains("<ul class=\"icicle\">") && page.contains("One report has been read"), "{page}");
    assert!(!page.contains("Null pointer"), "a crash is no hang: {page}");
}
