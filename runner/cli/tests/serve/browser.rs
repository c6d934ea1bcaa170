//! Chromium, driven by ChromeDriver over the WebDriver protocol (W3C).

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The path of ChromeDriver.
pub(crate) fn driver() -> Option<String> {
    std::env::var("RUNNER_TEST_CHROMEDRIVER")
        .ok()
        .filter(|path| !path.is_empty())
}

/// The longest wait for something to appear.
const WAIT: Duration = Duration::from_secs(20);

/// A browser with one window.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Opens a window of this size.
    pub(crate) fn new(width: u32, height: u32) -> Self {
        let mut driver = Command::new(driver().unwrap())
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let port = lines
            .find_map(|line| {
                line.rsplit_once("successfully on port ")?
                    .1
                    .trim_end_matches('.')
                    .parse()
                    .ok()
            })
            .expect("ChromeDriver prints its port");
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
        };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            &format!("--window-size={width},{height}"),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
            "unhandledPromptBehavior": "ignore",
        } } });
        let session = browser.call("POST", "/session", &wanted);
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        browser
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(method, path, body);
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The value of an answer, or its error.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body = if method == "POST" {
            body.to_string()
        } else {
            String::new()
        };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: \
            application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).unwrap();
        let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
        let value = answer["value"].take();
        if value["error"].is_null() {
            Ok(value)
        } else {
            Err(value)
        }
    }

    fn on_session(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(method, &format!("{}{path}", self.session), body)
    }

    /// Goes to a URL.
    pub(crate) fn open(&self, url: &str) {
        self.on_session("POST", "/url", &json!({ "url": url }));
    }

    /// The value of a script's `return`.
    pub(crate) fn script(&self, script: &str) -> Value {
        self.on_session("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The value that a script passes to its last argument, a function.
    pub(crate) fn script_later(&self, script: &str) -> Value {
        self.on_session("POST", "/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// The text that the page shows.
    pub(crate) fn text(&self) -> String {
        self.script("return document.body.innerText")
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Waits until a script returns true.
    pub(crate) fn wait(&self, what: &str, script: &str) {
        let began = Instant::now();
        while self.script(script) != json!(true) {
            assert!(began.elapsed() < WAIT, "waited in vain for {what}: {}", self.text());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the page shows a text.
    pub(crate) fn wait_for(&self, text: &str) {
        let literal = json!(text).to_string();
        self.wait(text, &format!("return document.body.innerText.includes({literal})"));
    }

    /// The elements that a selector finds.
    fn element(&self, selector: &str) -> String {
        let found = self.on_session(
            "POST",
            "/element",
            &json!({ "using": "css selector", "value": selector }),
        );
        let id = found.as_object().unwrap().values().next().unwrap();
        id.as_str().unwrap().to_owned()
    }

    /// Clicks an element.
    pub(crate) fn click(&self, selector: &str) {
        self.act(selector, "click", &json!({}));
    }

    /// Types into the element that has the focus, or another.
    pub(crate) fn keys(&self, selector: &str, text: &str) {
        self.act(selector, "value", &json!({ "text": text }));
    }

    /// Presses a key of the keyboard, wherever the focus is.
    pub(crate) fn press(&self, key: &str) {
        let strokes = ["keyDown", "keyUp"].map(|stroke| json!({ "type": stroke, "value": key }));
        let actions = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] });
        self.on_session("POST", "/actions", &actions);
    }

    /// Sets the size of the window.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        self.on_session("POST", "/window/rect", &json!({ "width": width, "height": height }));
    }

    /// Emulates a screen of this size, which may be smaller than a window can be.
    pub(crate) fn emulate(&self, width: u32, height: u32) {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.on_session(
            "POST",
            "/goog/cdp/execute",
            &json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": params }),
        );
    }

    /// Finds an element and acts on it; again, where the page replaces it in between.
    fn act(&self, selector: &str, action: &str, body: &Value) {
        let began = Instant::now();
        loop {
            let element = self.element(selector);
            let path = format!("{}/element/{element}/{action}", self.session);
            match self.ask("POST", &path, body) {
                Ok(_) => return,
                Err(error) if error["error"] == "stale element reference" && began.elapsed() < WAIT => {}
                Err(error) => panic!("{action} of {selector}: {error}"),
            }
        }
    }

    /// The path of the page that is open.
    pub(crate) fn path(&self) -> String {
        self.script("return location.pathname").as_str().unwrap().to_owned()
    }

    /// The errors that the browser has logged since the last call.
    pub(crate) fn errors(&self) -> Vec<String> {
        let log = self.on_session("POST", "/se/log", &json!({ "type": "browser" }));
        let severe = log
            .as_array()
            .into_iter()
            .flatten()
            .filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    /// Runs a script in each document that is opened from now on, before its own.
    pub(crate) fn prelude(&self, script: &str) {
        self.on_session(
            "POST",
            "/goog/cdp/execute",
            &json!({ "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": { "source": script } }),
        );
    }

    /// Sets whether the network can be reached.
    pub(crate) fn set_offline(&self, is_offline: bool) {
        let conditions =
            json!({ "network_conditions": { "offline": is_offline, "latency": 0, "throughput": -1 } });
        self.on_session("POST", "/chromium/network_conditions", &conditions);
    }

    /// Emulates a preference of the reader, such as dark colours.
    pub(crate) fn prefer(&self, name: &str, value: &str) {
        let params = json!({ "features": [{ "name": name, "value": value }] });
        self.on_session(
            "POST",
            "/goog/cdp/execute",
            &json!({ "cmd": "Emulation.setEmulatedMedia", "params": params }),
        );
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.on_session("DELETE", "", &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
