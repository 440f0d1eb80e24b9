import AccessControl
import FoundationEssentials
import HTTPTypes
import Model
import Testing

@testable import API

/// The routes, the rules for browsers and the challenge of OAuth.
@Suite struct OAuthRouteTests {
    private let page = RequestValidator(
        hostHeaderRule: .any,
        allowedOrigins: [],
        pageScheme: "https",
        hasOAuth: true
    )
    private let withoutOAuth = RequestValidator(hostHeaderRule: .any, allowedOrigins: [], pageScheme: "https")

    private func status(
        _ validator: RequestValidator,
        _ method: HTTPRequest.Method,
        _ path: String,
        _ fields: [(String, String)]
    ) throws -> Int {
        var request = HTTPRequest(method: method, scheme: "https", authority: "lab:7283", path: path)
        for (name, value) in fields {
            request.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        do { try validator.validate(request) } catch { return error.status }
        return 200
    }

    private func issuer(_ host: String) -> String? {
        OAuthIssuer(of: HTTPRequest(method: .get, scheme: nil, authority: host, path: "/mcp"), scheme: "https")?.text
    }

    @Test func `without OAuth, each of its routes is unknown as before`() throws {
        for route in RouteTable.oauth {
            let path = route.path.replacing("{id}", with: "shop")
            #expect { try RouteTable.route(route.method, path) } throws: { ($0 as? Problem)?.code == .notFound }
            #expect(try RouteTable.route(route.method, path, withOAuth: true).route.path == route.path)
            #expect(route.permission == .public && route.kind == .document)
        }
        #expect(!OpenAPIDocument.text.contains("/oauth/"))
        #expect(throws: Problem.self) {
            try RouteTable.route(.get, "/.well-known/oauth-protected-resource", withOAuth: true)
        }
    }

    @Test func `any site may lead a browser to the page of the consent, in a window only`() throws {
        let window = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
        let frame = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")]
        let fetch = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "empty")]
        let path = "/oauth/authorize?client_id=x"
        #expect(try status(page, .get, path, window) == 200)
        #expect(try status(page, .get, path, frame) == 403)
        #expect(try status(page, .get, path, fetch) == 403)
        #expect(try status(page, .get, path, window + [("Origin", "https://evil.example")]) == 403)
        #expect(try status(page, .get, "/", window) == 403)
        #expect(try status(page, .get, "/v1/status", window) == 403)
        #expect(try status(page, .post, "/oauth/requests", window) == 403)
        #expect(try status(withoutOAuth, .get, path, window) == 403)
    }

    @Test func `only the routes of tokens take a form, and no page of another site sends one`() throws {
        let form = [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "3")]
        #expect(try status(page, .post, "/oauth/token", form) == 200)
        #expect(try status(page, .post, "/oauth/revoke", form) == 200)
        #expect(try status(page, .post, "/token", form) == 200)
        #expect(try status(withoutOAuth, .post, "/token", form) == 415)
        #expect(try status(page, .post, "/oauth/token", form + [("Origin", "https://evil.example")]) == 403)
        for path in ["/oauth/requests", "/oauth/register", "/mcp", "/v1/grants"] {
            #expect(try status(page, .post, path, form) == 415, "\(path)")
        }
        #expect(try status(withoutOAuth, .post, "/oauth/token", form) == 415)
    }

    @Test(arguments: [
        ("127.0.0.1:7282", "https://127.0.0.1:7282"), ("LAB.local", "https://lab.local"),
        ("[::1]:7282", "https://[::1]:7282"),
        ("a\"b", nil), ("a b", nil), ("a:b", nil), ("a:", nil), ("", nil), ("[::1", nil), ("user@a", nil), ("a/b", nil),
        ("a:99999", nil), ("a:01", nil), ("[]", nil), ("[", nil),
    ])
    func `the issuer is the host of the request, if it is plain`(host: String, expected: String?) {
        #expect(issuer(host) == expected)
    }

    @Test func `a challenge names the metadata, and calls a token invalid only if there was one`() throws {
        let request = HTTPRequest(method: .post, scheme: nil, authority: "lab:7283", path: "/mcp")
        let issuer = try #require(OAuthIssuer(of: request, scheme: "https"))

        #expect(
            issuer.challenge(at: "/e/shop/mcp", error: nil, scopes: ["a", "b"])
                == "Bearer resource_metadata=\"https://lab:7283/.well-known/oauth-protected-resource/e/shop/mcp\", "
                + "scope=\"a b\""
        )
        let wrong = issuer.challenge(at: "/mcp", error: .invalidToken, scopes: [])
        #expect(wrong.hasPrefix("Bearer error=\"invalid_token\", "))
        #expect(!issuer.challenge(at: "/e/\"x/mcp", error: nil, scopes: []).contains("\"x"))
        #expect(OAuthIssuer(of: request, scheme: nil) == nil)
        for path in ["/mcp", "/all/mcp", "/e/shop/mcp"] { #expect(OAuthIssuer.isResource(path)) }
        for path in ["/", "/mcp/", "/mcp/server-card", "/v1/endpoints", "/e/shop"] {
            #expect(!OAuthIssuer.isResource(path), "\(path)")
        }
    }

    @Test(arguments: [
        ("http://127.0.0.1:7282/mcp", "/mcp"), ("https://lab/e/shop/mcp", "/e/shop/mcp"), ("https://lab", "/"),
    ])
    func `a grant of OAuth knows the path of its MCP server`(resource: String, path: String) {
        let grant = Grant(
            id: "abcdefgh",
            name: SanitizedText("x"),
            permissions: Permissions([], on: .all),
            binding: .bearer,
            parent: nil,
            invite: nil,
            createdAt: .distantPast,
            expiresAt: .distantFuture,
            lastUsedAt: .distantPast,
            idleSeconds: 1,
            resource: resource,
            endReason: nil
        )
        #expect(grant.resourcePath == path[...])
    }
}
