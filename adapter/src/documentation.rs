//! What the adapter serves of itself: the OpenAPI document at `/openapi.json`, a page that shows it at
//! `/docs/`, and how far it is with the log at `/status`. Stands in front of the services, which get every other request;
//! composed by [`crate::run`].
//!
//! The page is Swagger UI, whose files a package carries. It asks nobody but this adapter for anything.

pub mod document;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::{Config, SwaggerFile};

use crate::api_error::ApiError;
use crate::http::{Completion, Fault, Method, Refused, Reply, Request, Service};
use crate::limits::Limits;
use crate::route::{
    Lookup, Route, RouteTable, Security, Weight, not_found, open_to_any_origin, preflight,
    wrong_method,
};
use crate::spot::name_headers;
use crate::status::Status;

/// What the page may load and run: its own files, its styles, and the images that these draw.
const PAGE_POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

/// What is served of the documentation.
#[derive(Debug, Clone, Copy)]
enum Page {
    /// The document.
    Document,
    /// The way from `/docs` to `/docs/`, where the page's own references lead to its files.
    Redirect,
    /// The page.
    Index,
    /// One of its files.
    File,
    /// Where the adapter stands.
    Status,
}

/// A service with its documentation.
pub struct Documented {
    service: Arc<dyn Service>,
    limits: Arc<Limits>,
    document: Bytes,
    pages: RouteTable<Page>,
    config: Arc<Config<'static>>,
    status: StatusNow,
    header_prefix: String,
}

/// Tells where the adapter stands.
pub type StatusNow = Box<dyn Fn() -> Status + Send + Sync>;

impl Documented {
    /// `service`, described by `document`, with what `status` tells. Requests for the documentation count against `limits` like
    /// those of the least weight, and show it in headers that begin with `header_prefix`.
    #[must_use]
    pub fn new(
        service: Arc<dyn Service>,
        (limits, header_prefix): (Arc<Limits>, &str),
        document: &OpenApi,
        status: StatusNow,
    ) -> Self {
        let page = |path, handler| Route {
            method: Method::Get,
            path,
            security: Security::None,
            weight: Weight::Fixed(1),
            order_cost: 0,
            handler,
        };
        let pages = [
            page("/openapi.json", Page::Document),
            page("/docs", Page::Redirect),
            page("/docs/", Page::Index),
            page("/docs/{file}", Page::File),
            page("/status", Page::Status),
        ];
        let document = document.to_json().expect("all keys of the document are strings");
        Self {
            service,
            limits,
            document: document.into(),
            pages: RouteTable::new(pages).expect("no page stands there twice"),
            // By itself the page would have the document checked by a service on the Internet.
            config: Arc::new(Config::from("../openapi.json").validator_url("none")),
            status,
            header_prefix: header_prefix.to_owned(),
        }
    }

    fn page(&self, route: &Route<Page>, request: &Request) -> Reply {
        match route.handler {
            Page::Document => {
                open_to_any_origin(Reply::with_type(200, "application/json", self.document.clone()))
            }
            Page::Redirect => Reply::empty(308).header("Location", "docs/"),
            Page::Index => self.file("index.html", request),
            Page::File => self.file(route.argument(&request.path).unwrap_or_default(), request),
            Page::Status => {
                let status =
                    serde_json::to_vec(&(self.status)()).expect("a struct of plain fields");
                open_to_any_origin(Reply::json(200, status)).header("Cache-Control", "no-store")
            }
        }
    }

    fn file(&self, name: &str, request: &Request) -> Reply {
        let Ok(Some(file)) = utoipa_swagger_ui::serve(name, Arc::clone(&self.config)) else {
            return not_found(&request.headers);
        };
        let SwaggerFile { bytes, content_type, .. } = file;
        let body = match bytes {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => bytes.into(),
        };
        Reply { body, ..Reply::empty(200) }
            .header("Content-Type", content_type)
            .header("Content-Security-Policy", PAGE_POLICY)
            .header("X-Content-Type-Options", "nosniff")
    }

    /// The reply to a request for a page, unless its address is not served or has used up its limits.
    fn reply(&self, address: IpAddr, request: &Request, found: Lookup<'_, Page>) -> Reply {
        if self.limits.denies(address) {
            return Reply::empty(403);
        }
        let admission = self.limits.admit(address, 1, request.arrived_ms());
        let mut reply = match (admission.refusal, found) {
            (Some(refusal), _) => ApiError::from(refusal).reply(),
            (None, Lookup::Found(route)) => self.page(route, request),
            (None, Lookup::WrongMethod(allow)) => wrong_method(allow),
            (None, Lookup::Options(allow)) => preflight(allow),
            (None, Lookup::NotFound) => not_found(&request.headers),
        };
        self.limits.add_headers(&admission, &mut reply);
        name_headers(&mut reply, &self.header_prefix);
        reply
    }
}

impl Service for Documented {
    fn call(&self, request: Request, done: Completion) {
        match self.pages.lookup(request.method, &request.path) {
            Lookup::NotFound => self.service.call(request, done),
            found => {
                let address = self.limits.client(request.peer.ip(), &request.headers);
                done.send(self.reply(address, &request, found));
            }
        }
    }

    fn worker_wakes(&self) {
        self.service.worker_wakes();
    }

    fn worker_looks(&self) {
        self.service.worker_looks();
    }

    fn worker_turns(&self) {
        self.service.worker_turns();
    }

    fn worker_sleeps(&self) {
        self.service.worker_sleeps();
    }

    fn body_limit(&self, path: &str) -> usize {
        self.service.body_limit(path)
    }

    /// The service knows nothing of the pages, so where it has no such path they say what they take.
    fn fault(&self, refused: &Refused<'_>, fault: Fault) -> Reply {
        let reply = self.service.fault(refused, fault);
        match self.pages.allow(refused.path) {
            Some(allow) if fault == Fault::UnknownMethod && reply.status == 404 => {
                let mut wrong = wrong_method(allow);
                wrong.headers.extend(reply.headers);
                wrong
            }
            _ => reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LimitsConfig;
    use crate::status::Followers;
    use std::sync::mpsc;
    use std::time::Instant;

    /// Answers 404.
    struct NoService;

    impl Service for NoService {
        fn call(&self, _: Request, done: Completion) {
            done.send(Reply::empty(404));
        }

        fn body_limit(&self, _: &str) -> usize {
            0
        }

        fn fault(&self, _: &Refused<'_>, fault: Fault) -> Reply {
            fault.reply()
        }
    }

    #[test]
    fn pages_are_counted_and_are_not_for_denied_addresses() {
        let limits = Arc::new(Limits::new(LimitsConfig {
            request_weight_per_minute: 2,
            raw_requests_per_5_minutes: 100,
            refusals_before_ban: 100,
            denied: vec!["192.0.2.0/24".parse().unwrap()],
            trusted_proxies: Vec::new(),
        }));
        let status = || {
            let (views, history, views_behind, history_behind) = (0, 0, 0, 0);
            let followers = Followers { views, history, views_behind, history_behind };
            let (appended, durable) = (None, None);
            Status {
                incarnation: None,
                log: None,
                engine_connected: false,
                appended,
                durable,
                feed: None,
                feed_behind: None,
                followers,
            }
        };
        let document = OpenApi::default();
        let limits = (limits, "X-OTHER");
        let pages = Documented::new(Arc::new(NoService), limits, &document, Box::new(status));
        let answer = |path: &str, address: [u8; 4]| {
            let (sender, receiver) = mpsc::channel();
            let request = Request {
                method: Method::Get,
                path: path.to_owned(),
                query: Bytes::new(),
                headers: crate::http::Headers::default(),
                body: Bytes::new(),
                peer: (address, 1).into(),
                arrived_ns: 1_800_000_000_000_000_000,
                arrived: Instant::now(),
            };
            pages.call(request, Completion::new(move |reply| sender.send(reply).unwrap()));
            receiver.recv().unwrap()
        };
        let used = |path: &str, address| {
            let reply = answer(path, address);
            let mut headers = reply.headers.iter();
            let used = headers.find(|(name, _)| name == "X-OTHER-USED-WEIGHT-1M");
            used.map(|(_, value)| value.to_string())
        };
        let ask = |path: &str, address| answer(path, address).status;
        let (one, other, denied) = ([198, 51, 100, 1], [198, 51, 100, 2], [192, 0, 2, 1]);
        assert_eq!(ask("/status", one), 200);
        assert_eq!(ask("/openapi.json", one), 200);
        for path in ["/status", "/openapi.json", "/docs", "/docs/", "/docs/index.css"] {
            assert_eq!((ask(path, one), ask(path, denied)), (429, 403), "{path}");
        }
        assert_eq!((ask("/docs", other), ask("/docs/none.css", other)), (308, 404));
        assert_eq!(ask("/elsewhere", one), 404, "that is for the service to count");
        assert_eq!(used("/status", [198, 51, 100, 3]).as_deref(), Some("1"));
        assert_eq!(used("/docs/index.css", [198, 51, 100, 3]).as_deref(), Some("2"));
        assert!(used("/status", one).is_some(), "also who is refused is told");
        assert_eq!(used("/status", denied), None);
    }
}
