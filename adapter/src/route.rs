//! The route table: what the contract says about each endpoint, in one place. The spot service
//! builds one with its handlers and looks every request up in it; weight accounting, key checks
//! and order counting read the same rows.

use std::collections::BTreeMap;

use crate::api_error::ApiError;
use crate::http::{Headers, Method, Reply, Request};
use crate::parameters::Parameters;

/// What a request must prove (spot contract §4 and §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Nothing.
    None,
    /// API key.
    MarketData,
    /// API key.
    UserStream,
    /// API key, signature and timing.
    Trade,
    /// API key, signature and timing.
    UserData,
    /// The same, by a key that may trade as by one that may read the account.
    Signed,
    /// A token in the `Authorization` header (jobs contract §5); no API key.
    Bearer,
}

impl Security {
    /// Whether the request must carry an API key.
    pub fn needs_key(self) -> bool {
        !matches!(self, Self::None | Self::Bearer)
    }

    /// Whether the request must be signed and timed.
    pub fn needs_signature(self) -> bool {
        matches!(self, Self::Trade | Self::UserData | Self::Signed)
    }
}

/// The values that `limit` of GET /depth may have (spot contract §4), for
/// [`Parameters::choice`].
pub const DEPTH_LIMITS: [(&str, u32); 8] = [
    ("5", 5),
    ("10", 10),
    ("20", 20),
    ("50", 50),
    ("100", 100),
    ("500", 500),
    ("1000", 1000),
    ("5000", 5000),
];

/// [`DEPTH_LIMITS`] as quoted to clients.
pub const DEPTH_LIMITS_LEGAL: &str = "5, 10, 20, 50, 100, 500, 1000, 5000";

/// What a request costs against the request weight of its IP (spot contract §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Always the same.
    Fixed(u32),
    /// By the `limit` of GET /depth.
    ByDepthLimit,
    /// By whether a `symbol` is given or the request covers all of them.
    BySymbol {
        /// One symbol.
        with: u32,
        /// All symbols.
        without: u32,
    },
}

impl Weight {
    /// The weight of a request with these parameters. A value that the route will refuse costs
    /// the least. Reads no parameter.
    pub fn of(self, parameters: &Parameters<'_>) -> u32 {
        match self {
            Self::ByDepthLimit => match parameters.peek("limit") {
                Some("500") => 5,
                Some("1000") => 10,
                Some("5000") => 50,
                _ => 1,
            },
            Self::BySymbol { without, .. } if parameters.peek("symbol").is_none() => without,
            fixed => fixed.least(),
        }
    }

    /// The weight of a request whose parameters cannot even be read.
    pub fn least(self) -> u32 {
        match self {
            Self::Fixed(weight) => weight,
            Self::ByDepthLimit => 1,
            Self::BySymbol { with, .. } => with,
        }
    }
}

/// One endpoint.
#[derive(Debug, Clone)]
pub struct Route<H> {
    /// Its method; a GET route answers HEAD too.
    pub method: Method,
    /// Its path, compared byte by byte with the one received. A last segment in braces stands for any
    /// that is not empty: `/jobs/{id}`.
    pub path: &'static str,
    /// What a request must prove.
    pub security: Security,
    /// What a request costs its IP.
    pub weight: Weight,
    /// What an accepted request costs the account's order count: 0, 1, or 2 for a list.
    pub order_cost: u8,
    /// What serves it.
    pub handler: H,
}

impl<H> Route<H> {
    /// The segment of `path`, which led here, that the route's braces stand for; escapes not decoded.
    pub fn argument<'a>(&self, path: &'a str) -> Option<&'a str> {
        let prefix = template(self.path)?;
        path.strip_prefix(prefix).filter(|rest| !rest.is_empty() && !rest.contains('/'))
    }
}

/// What stands in front of a path's segment in braces.
fn template(path: &'static str) -> Option<&'static str> {
    let (prefix, last) = path.split_at(path.rfind('/')? + 1);
    (last.starts_with('{') && last.ends_with('}')).then_some(prefix)
}

/// Two routes with the same method and path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two routes for {} {path}", method.token())]
pub struct RouteConflict {
    /// Their method.
    pub method: Method,
    /// Their path.
    pub path: &'static str,
}

/// What a look-up found.
#[derive(Debug)]
pub enum Lookup<'a, H> {
    /// The route.
    Found(&'a Route<H>),
    /// The path exists, with other methods: the value of an `Allow` header.
    WrongMethod(&'a str),
    /// OPTIONS on a path that exists: the value of an `Allow` header.
    Options(&'a str),
    /// No such path.
    NotFound,
}

/// All routes of a service, by path and method.
#[derive(Debug, Clone)]
pub struct RouteTable<H> {
    paths: BTreeMap<&'static str, Endpoints<H>>,
    /// Paths whose last segment may be any, by what stands in front of it.
    templates: BTreeMap<&'static str, Endpoints<H>>,
}

#[derive(Debug, Clone)]
struct Endpoints<H> {
    allow: String,
    routes: Vec<Route<H>>,
}

impl<H> RouteTable<H> {
    /// Builds the table.
    ///
    /// # Errors
    /// [`RouteConflict`] for the first route that stands there twice.
    pub fn new(routes: impl IntoIterator<Item = Route<H>>) -> Result<Self, RouteConflict> {
        let (mut paths, mut templates) = (BTreeMap::new(), BTreeMap::new());
        for route in routes {
            let entry = match template(route.path) {
                Some(prefix) => templates.entry(prefix),
                None => paths.entry(route.path),
            };
            let endpoints =
                entry.or_insert_with(|| Endpoints { allow: String::new(), routes: Vec::new() });
            let (method, path) = (route.method, route.path);
            if endpoints.routes.iter().any(|other| other.method == method) {
                return Err(RouteConflict { method, path });
            }
            endpoints.routes.push(route);
        }
        for endpoints in paths.values_mut().chain(templates.values_mut()) {
            endpoints.allow = allow(&endpoints.routes);
        }
        Ok(Self { paths, templates })
    }

    /// All routes, by path.
    pub fn iter(&self) -> impl Iterator<Item = &Route<H>> {
        self.paths.values().chain(self.templates.values()).flat_map(|endpoints| &endpoints.routes)
    }

    /// What a path takes, as the value of an `Allow` header; `None` if there is no such path.
    pub fn allow(&self, path: &str) -> Option<&str> {
        self.endpoints(path).map(|endpoints| &*endpoints.allow)
    }

    fn endpoints(&self, path: &str) -> Option<&Endpoints<H>> {
        let templated = || {
            let (prefix, last) = path.split_at(path.rfind('/')? + 1);
            self.templates.get(prefix).filter(|_| !last.is_empty())
        };
        self.paths.get(path).or_else(templated)
    }

    /// Finds a route. The path is compared as received: an escaped letter is another path.
    pub fn lookup(&self, method: Method, path: &str) -> Lookup<'_, H> {
        let Some(endpoints) = self.endpoints(path) else { return Lookup::NotFound };
        let mut routes = endpoints.routes.iter();
        match routes.find(|route| route.method == method) {
            Some(route) => Lookup::Found(route),
            None if method == Method::Options => Lookup::Options(&endpoints.allow),
            None => Lookup::WrongMethod(&endpoints.allow),
        }
    }

    /// Finds the route of a request, or the reply that it gets for want of one.
    ///
    /// # Errors
    /// The reply: [`not_found`], [`wrong_method`] or [`preflight`].
    pub fn resolve(&self, request: &Request) -> Result<&Route<H>, Reply> {
        match self.lookup(request.method, &request.path) {
            Lookup::Found(route) => Ok(route),
            Lookup::WrongMethod(allow) => Err(wrong_method(allow)),
            Lookup::Options(allow) => Err(preflight(allow)),
            Lookup::NotFound => Err(not_found(&request.headers)),
        }
    }
}

fn allow<H>(routes: &[Route<H>]) -> String {
    let mut methods: Vec<_> = routes.iter().map(|route| route.method).collect();
    methods.sort_unstable();
    let mut tokens: Vec<_> = methods.iter().map(|method| method.token()).collect();
    if methods.first() == Some(&Method::Get) {
        tokens.insert(1, "HEAD");
    }
    if !methods.contains(&Method::Options) {
        tokens.push("OPTIONS");
    }
    tokens.join(", ")
}

/// The reply to an unknown path: 404 without a body, or with a page for a browser.
pub fn not_found(headers: &Headers) -> Reply {
    let wants_html = headers.get_all("accept").any(|value| {
        value.windows(b"text/html".len()).any(|part| part.eq_ignore_ascii_case(b"text/html"))
    });
    if !wants_html {
        return Reply::empty(404);
    }
    Reply::with_type(
        404,
        "text/html;charset=UTF-8",
        "<!DOCTYPE html><title>Not found</title><h1>404 Not found</h1>\n",
    )
}

/// The reply to a known path with another method: 405, with what is allowed.
pub fn wrong_method(allow: &str) -> Reply {
    let error = ApiError { status: 405, ..ApiError::unsupported_operation() };
    error.reply().header("Allow", allow.to_owned())
}

/// The reply to OPTIONS: any page may read what needs no key.
pub fn preflight(allow: &str) -> Reply {
    open_to_any_origin(
        Reply::empty(204)
            .header("Allow", allow.to_owned())
            .header("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
    )
}

/// Marks a reply to a GET as readable by scripts of any web page.
#[must_use]
pub fn open_to_any_origin(reply: Reply) -> Reply {
    reply.header("Access-Control-Allow-Origin", "*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn route(method: Method, path: &'static str, handler: u32) -> Route<u32> {
        Route {
            method,
            path,
            security: Security::None,
            weight: Weight::Fixed(1),
            order_cost: 0,
            handler,
        }
    }

    fn table() -> RouteTable<u32> {
        RouteTable::new([
            route(Method::Get, "/a", 1),
            route(Method::Post, "/a/b", 2),
            route(Method::Delete, "/a", 3),
            route(Method::Post, "/a", 4),
        ])
        .unwrap()
    }

    fn request(method: Method, path: &str, accept: &[&str]) -> Request {
        let mut headers = Headers::default();
        for value in accept {
            headers.push("Accept", value.as_bytes());
        }
        Request {
            method,
            path: path.to_owned(),
            query: Bytes::new(),
            headers,
            body: Bytes::new(),
            peer: ([127, 0, 0, 1], 1).into(),
            arrived_ns: 0,
            arrived: std::time::Instant::now(),
        }
    }

    fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
        let found = reply.headers.iter().find(|(other, _)| other == name)?;
        Some(&found.1)
    }

    #[test]
    fn routes_are_found_by_method_and_exact_path() {
        let table = table();
        for (method, path, handler) in [
            (Method::Get, "/a", 1),
            (Method::Post, "/a/b", 2),
            (Method::Delete, "/a", 3),
            (Method::Post, "/a", 4),
        ] {
            assert_eq!(table.resolve(&request(method, path, &[])).unwrap().handler, handler);
        }
        for path in ["/", "", "/A", "/a/", "/%61", "/a/b/c", "*"] {
            assert!(matches!(table.lookup(Method::Get, path), Lookup::NotFound), "{path}");
        }
        assert_eq!(table.iter().count(), 4);
    }

    #[test]
    fn a_segment_in_braces_is_any_but_an_exact_path_goes_first() {
        let table = RouteTable::new([
            route(Method::Get, "/a/{id}", 1),
            route(Method::Delete, "/a/{id}", 2),
            route(Method::Get, "/a/b", 3),
        ])
        .unwrap();
        let found = |method, path| match table.lookup(method, path) {
            Lookup::Found(route) => Some((route.handler, route.argument(path))),
            _ => None,
        };
        assert_eq!(found(Method::Get, "/a/5"), Some((1, Some("5"))));
        assert_eq!(found(Method::Delete, "/a/%2Fx"), Some((2, Some("%2Fx"))));
        assert_eq!(found(Method::Get, "/a/{id}"), Some((1, Some("{id}"))));
        assert_eq!(found(Method::Get, "/a/b"), Some((3, None)));
        for path in ["/a/", "/a", "/a/5/", "/a/5/6", "/b/5", "5", ""] {
            assert_eq!(found(Method::Get, path), None, "{path}");
        }
        assert!(matches!(table.lookup(Method::Put, "/a/5"), Lookup::WrongMethod(_)));
        assert_eq!(table.iter().count(), 3);
        let twice = [route(Method::Get, "/a/{id}", 1), route(Method::Get, "/a/{other}", 2)];
        assert!(RouteTable::new(twice).is_err());
    }

    #[test]
    fn another_method_is_told_which_are_allowed() {
        let table = table();
        let reply = table.resolve(&request(Method::Put, "/a", &[])).unwrap_err();
        assert_eq!(reply.status, 405);
        assert_eq!(header(&reply, "Allow"), Some("GET, HEAD, POST, DELETE, OPTIONS"));
        assert_eq!(&reply.body[..], br#"{"code":-1020,"msg":"This operation is not supported."}"#);
        let reply = table.resolve(&request(Method::Get, "/a/b", &[])).unwrap_err();
        assert_eq!(header(&reply, "Allow"), Some("POST, OPTIONS"));
    }

    #[test]
    fn options_is_answered_for_every_path_that_exists() {
        let table = table();
        let reply = table.resolve(&request(Method::Options, "/a", &[])).unwrap_err();
        assert_eq!(reply.status, 204);
        assert_eq!(header(&reply, "Access-Control-Allow-Origin"), Some("*"));
        assert_eq!(header(&reply, "Access-Control-Allow-Methods"), Some("GET, HEAD, OPTIONS"));
        let reply = table.resolve(&request(Method::Options, "/x", &[])).unwrap_err();
        assert_eq!(reply.status, 404);
    }

    #[test]
    fn an_unknown_path_gets_a_page_only_where_html_is_wanted() {
        let table = table();
        for accept in [&[][..], &["*/*"], &["application/json"]] {
            let reply = table.resolve(&request(Method::Get, "/x", accept)).unwrap_err();
            assert_eq!((reply.status, reply.body.len(), reply.content_type), (404, 0, None));
        }
        for accept in [&["text/html"][..], &["image/png", "application/xml, Text/HTML;q=0.9"]] {
            let reply = table.resolve(&request(Method::Get, "/x", accept)).unwrap_err();
            assert_eq!(reply.status, 404);
            assert!(reply.content_type.unwrap().starts_with("text/html"));
            assert!(!reply.body.is_empty());
        }
    }

    #[test]
    fn a_route_may_stand_there_once() {
        let twice = [route(Method::Get, "/a", 1), route(Method::Get, "/a", 2)];
        let error = RouteTable::new(twice).unwrap_err();
        assert_eq!(error.to_string(), "two routes for GET /a");
    }

    #[test]
    fn weights_follow_the_contract() {
        let by_symbol = Weight::BySymbol { with: 1, without: 40 };
        for (weight, query, expected) in [
            (Weight::Fixed(10), "limit=5000", 10),
            (Weight::ByDepthLimit, "symbol=A", 1),
            (Weight::ByDepthLimit, "limit=5", 1),
            (Weight::ByDepthLimit, "limit=100", 1),
            (Weight::ByDepthLimit, "limit=500", 5),
            (Weight::ByDepthLimit, "limit=1000", 10),
            (Weight::ByDepthLimit, "%6cimit=5000", 50),
            (Weight::ByDepthLimit, "limit=4999", 1),
            (by_symbol, "", 40),
            (by_symbol, "symbols=A", 40),
            (by_symbol, "symbol=A", 1),
            (by_symbol, "symbol=", 1),
        ] {
            let parameters = Parameters::parse(query.as_bytes(), b"").unwrap();
            assert_eq!(weight.of(&parameters), expected, "{query}");
            assert_eq!(parameters.read(), 0);
        }
        assert_eq!(by_symbol.least(), 1);
    }

    #[test]
    fn depth_limits_and_their_text_agree() {
        let texts: Vec<_> = DEPTH_LIMITS.iter().map(|(text, _)| *text).collect();
        assert_eq!(texts.join(", "), DEPTH_LIMITS_LEGAL);
        for (text, limit) in DEPTH_LIMITS {
            assert_eq!(text.parse(), Ok(limit));
        }
    }

    #[test]
    fn what_each_kind_of_security_needs() {
        for (security, key, signature) in [
            (Security::None, false, false),
            (Security::MarketData, true, false),
            (Security::UserStream, true, false),
            (Security::Trade, true, true),
            (Security::UserData, true, true),
            (Security::Signed, true, true),
            (Security::Bearer, false, false),
        ] {
            assert_eq!(security.needs_key(), key);
            assert_eq!(security.needs_signature(), signature);
        }
    }
}
