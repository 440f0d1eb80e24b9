import HTTPTypes
import Model
import Testing

@testable import API

@Suite struct RequestValidatorTests {
    private let tcp = RequestValidator(
        hostHeaderRule: .loopback(port: 7_282),
        allowedOrigins: ["http://localhost:5173"]
    )
    private let unix = RequestValidator(hostHeaderRule: .loopback(port: nil), allowedOrigins: [])
    private let remote = RequestValidator(hostHeaderRule: .any, allowedOrigins: [])

    private func status(
        _ validator: RequestValidator,
        host: String? = "localhost",
        method: HTTPRequest.Method = .get,
        _ fields: [(String, String)] = []
    ) throws -> Int {
        var request = HTTPRequest(method: method, scheme: "http", authority: host, path: "/v1/endpoints")
        for (name, value) in fields {
            request.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        do { try validator.validate(request) } catch { return error.status }
        return 200
    }

    @Test(arguments: [
        ("localhost", 200), ("LocalHost", 200), ("127.0.0.1", 200), ("[::1]", 200), ("localhost:7282", 200),
        ("127.0.0.1:7282", 200), ("[::1]:7282", 200), ("localhost:7283", 421), ("localhost:07282", 421),
        ("localhost:+7282", 421), ("localhost:", 421), ("localhost:7282:7282", 421), ("localhost.", 421),
        ("localhost6", 421), ("localhost.evil.test", 421), ("evil.test", 421), ("evil.test:7282", 421),
        ("127.0.0.2", 421), ("127.1", 421), ("0.0.0.0", 421), ("2130706433", 421), ("::1", 421), ("[::]", 421),
        ("[::ffff:127.0.0.1]", 421), ("patchbay.local", 421), ("user@localhost", 421), ("localhost/", 421),
        ("", 421),
    ])
    func `only loopback names with the right port are accepted as Host`(host: String, expected: Int) throws {
        #expect(try status(tcp, host: host) == expected)
    }

    @Test func `a request must have exactly one Host`() throws {
        #expect(try status(tcp, host: nil) == 400)
        #expect(try status(tcp, [("Host", "localhost")]) == 400)
        #expect(try status(tcp, [("host", "evil.test")]) == 400)
    }

    @Test(arguments: ["mac-mini.local", "192.168.1.7:7283", "[fd00::1]:7283", "localhost"])
    func `a remote client may use any Host, and has the other rules`(host: String) throws {
        #expect(try status(remote, host: host) == 200)
        #expect(try status(remote, host: nil) == 400)
        #expect(try status(remote, host: host, [("Host", "evil.test")]) == 400)
        #expect(try status(remote, host: host, [("Origin", "https://\(host)")]) == 403)
        #expect(try status(remote, host: host, [("Sec-Fetch-Site", "same-origin")]) == 403)
        #expect(try status(remote, host: host, method: .options) == 405)
    }

    @Test func `on the Unix socket, Host may have any port`() throws {
        #expect(try status(unix, host: "localhost:80") == 200)
        #expect(try status(unix, host: "evil.test") == 421)
    }

    @Test(arguments: [
        "https://evil.test", "null", "", "http://localhost.evil.test", "http://127.0.0.1:5173", "http://localhost:7282",
        "http://localhost:5173/", "http://localhost",
    ])
    func `an origin that is not listed is rejected`(origin: String) throws {
        #expect(try status(tcp, [("Origin", origin)]) == 403)
        #expect(try status(tcp, [("Origin", "http://localhost:5173"), ("Origin", origin)]) == 403)
    }

    @Test func `a listed origin is accepted`() throws {
        #expect(try status(tcp, [("Origin", "http://localhost:5173"), ("Sec-Fetch-Site", "cross-site")]) == 200)
        #expect(try status(unix, [("Origin", "http://localhost:5173")]) == 403)
    }

    @Test(arguments: ["localhost:7282", "127.0.0.1:7282", "[::1]:7282", "LocalHost:7282"])
    func `the origin of the listener itself is accepted`(host: String) throws {
        let own = "http://\(host.lowercased())"

        #expect(try status(tcp, host: host, [("Origin", own), ("Sec-Fetch-Site", "same-origin")]) == 200)
        // Another scheme, another name and a page of port 80 are foreign.
        #expect(try status(tcp, host: host, [("Origin", "https://\(host.lowercased())")]) == 403)
        #expect(try status(tcp, host: "localhost:7282", [("Origin", "http://127.0.0.1:7282")]) == 403)
        #expect(try status(tcp, host: host, [("Origin", own), ("Origin", "https://evil.test")]) == 403)
        #expect(try status(unix, host: host, [("Origin", own)]) == 403)
    }

    @Test func `a page of port 80 is foreign, also with the same host name`() throws {
        #expect(try status(tcp, host: "localhost", [("Origin", "http://localhost")]) == 403)
    }

    @Test(arguments: [("none", 200), ("same-origin", 403), ("same-site", 403), ("cross-site", 403)])
    func `requests that browsers mark with Sec-Fetch-Site are rejected`(site: String, expected: Int) throws {
        #expect(try status(tcp, [("Sec-Fetch-Site", site)]) == expected)
    }

    private let page = RequestValidator(
        hostHeaderRule: .loopback(port: 7_282),
        allowedOrigins: ["http://localhost:5173"],
        pageScheme: "http"
    )
    private let remotePage = RequestValidator(hostHeaderRule: .any, allowedOrigins: [], pageScheme: "https")

    @Test(arguments: [("none", 200), ("same-origin", 200), ("same-site", 403), ("cross-site", 403), ("", 403)])
    func `the listener's own page may send requests, and a page of another port may not`(site: String, expected: Int)
        throws
    {
        for host in ["localhost:7282", "127.0.0.1:7282", "[::1]:7282"] {
            #expect(try status(page, host: host, [("Sec-Fetch-Site", site)]) == expected)
            let own = [("Origin", "http://\(host)"), ("Sec-Fetch-Site", site)]
            #expect(try status(page, host: host, method: .post, own) == expected)
        }
        #expect(try status(remotePage, host: "lab:7283", [("Sec-Fetch-Site", site)]) == expected)
        let own = [("Origin", "https://lab:7283"), ("Sec-Fetch-Site", site)]
        #expect(try status(remotePage, host: "lab:7283", own) == expected)
    }

    @Test func `a page of another origin may not use the dashboard's rules`() throws {
        let host = "localhost:7282"
        for origin in ["http://localhost:3000", "http://127.0.0.1:7282", "https://localhost:7282", "null"] {
            let fields = [("Origin", origin), ("Sec-Fetch-Site", "same-origin")]
            #expect(try status(page, host: host, fields) == 403)
            #expect(try status(page, host: host, [("Origin", "http://\(host)")] + fields) == 403)
        }
        // After DNS rebinding, the page has the same origin as the broker, but the host names the page.
        let rebound = [("Origin", "http://evil.test:7282"), ("Sec-Fetch-Site", "same-origin")]
        #expect(try status(page, host: "evil.test:7282", rebound) == 421)
        // Without the port, the page is one of port 80.
        #expect(try status(page, host: "localhost", [("Sec-Fetch-Site", "same-origin")]) == 403)
        #expect(try status(page, host: host, [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "none")]) == 200)
        #expect(
            try status(page, host: host, [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")]) == 403
        )
        #expect(try status(remotePage, host: "lab:7283", [("Origin", "http://lab:7283")]) == 403)
        #expect(try status(remotePage, host: "lab:7283", [("Origin", "https://evil.test")]) == 403)
        #expect(try status(unix, host: host, [("Sec-Fetch-Site", "same-origin")]) == 403)
    }

    @Test func `a preflight is rejected`() throws {
        let fields = [("Origin", "https://evil.test"), ("Access-Control-Request-Private-Network", "true")]

        #expect(try status(tcp, method: .options, fields) == 405)
    }

    @Test(arguments: [
        ("application/json", 200), ("application/json; charset=utf-8", 200), ("Application/JSON", 200),
        ("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("multipart/form-data", 415),
        ("application/jsonp", 415), ("", 415),
    ])
    func `a body must be declared as JSON`(type: String, expected: Int) throws {
        for size in [("Content-Length", "2"), ("Transfer-Encoding", "chunked")] {
            #expect(try status(tcp, method: .post, [size, ("Content-Type", type)]) == expected)
        }
        #expect(try status(tcp, method: .post, [("Content-Length", "2")]) == 415)
        #expect(try status(tcp, method: .post, [("Content-Length", "0")]) == 200)
    }

    @Test(arguments: ["xchunked", "gzip, chunked", "chunked, identity", ""])
    func `an ambiguous Transfer-Encoding is rejected`(coding: String) throws {
        let fields = [("Transfer-Encoding", coding), ("Content-Type", "application/json")]

        #expect(try status(tcp, method: .post, fields) == 400)
    }

    @Test(arguments: [
        ("/v1/endpoints", nil), ("http://localhost/x", "localhost"), ("http://evil.test:1/x", "evil.test:1"),
        ("http://user@evil.test?x", "user@evil.test"), ("*", nil), ("evil.test:443", "evil.test:443"),
    ])
    func `a target in absolute form contains a host`(target: String, host: String?) {
        #expect(RequestProgressHandler.host(in: target) == host)
    }
}
