import Testing

@testable import AccessControl

@Suite struct RedirectURITests {
    @Test(arguments: [
        "https://claude.ai/api/mcp/auth_callback", "https://vscode.dev/redirect", "http://127.0.0.1:33418/",
        "http://[::1]/callback?x=1", "http://localhost:1", "https://xn--bcher-kva.example:8443/a%20b",
        "cursor://anysphere.cursor-mcp/oauth/callback", "vscode://vscode.example/did-authenticate?x=1",
        "com.example.app:/callback", "com.example.app://callback",
    ])
    func `a redirect URI is https, http on loopback, or of the private scheme of a program`(text: String) throws {
        #expect(try RedirectURI(text).text == text)
    }

    @Test(arguments: [
        "", "javascript:alert(1)", "data:text/html,x", "http://example.com/", "HTTPS://a.example/",
        "http://localhost.evil.example/", "http://127.0.0.1@evil.example/", "https://user@a.example/", "https:///x",
        "https://a.example\\@evil.example/", "https://a.example/#code", "https://a.example/ x", "https://a.example/\n",
        "https://a.example:99999/", "https://a.example:/", "https://bücher.example/", "https://a%2eexample/",
        "http://[::1", "http://127.0.0.1:+1/", "http://127.1/", "https://" + String(repeating: "a", count: 512),
        "javascript://a%0aalert(1)", "file:///etc/passwd", "file://host/x", "blob:https://a.example/1", "about://x",
        "intent://a#Intent;end", "ms-msdt://a", "view-source://a", "vbscript://a", "chrome://a", "ws://a", "ftp://a",
        "Cursor://a/x", "cursor:/x", "cursor:x", "cursor://", "cursor:///x", "cursor://user@a/x", "com.example.app:x",
        "com.example.app:", "com.example.app:/x#y", ":/x", "://a", "1a://b", "cursor",
    ])
    func `any other redirect URI is refused`(text: String) {
        #expect(throws: OAuthError.self) { try RedirectURI(text) }
    }

    @Test func `a redirect URI matches exactly, but on loopback with any port`() throws {
        let site = try RedirectURI("https://a.example/callback")
        for other in [
            "https://a.example/callback/", "https://a.example:443/callback", "https://a.example/callback?x=1",
        ] {
            #expect(!site.allows(try RedirectURI(other)), "\(other)")
        }
        let local = try RedirectURI("http://127.0.0.1/callback")
        #expect(local.allows(try RedirectURI("http://127.0.0.1:40000/callback")))
        for other in ["http://localhost/callback", "http://[::1]/callback", "http://127.0.0.1:1/other"] {
            #expect(!local.allows(try RedirectURI(other)), "\(other)")
        }
        #expect(
            !(try RedirectURI("https://127.0.0.1/callback").allows(try RedirectURI("https://127.0.0.1:1/callback")))
        )
    }

    @Test func `a private scheme matches exactly, and its origin is shown`() throws {
        let program = try RedirectURI("cursor://anysphere.cursor-mcp/oauth/callback")
        #expect(program.origin == "cursor://anysphere.cursor-mcp")
        #expect(try RedirectURI("com.example.app:/callback").origin == "com.example.app:")
        for other in [
            "cursor://anysphere.cursor-mcp:1/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback/",
            "vscode://anysphere.cursor-mcp/oauth/callback",
        ] {
            #expect(!program.allows(try RedirectURI(other)), "\(other)")
        }
        #expect(program.adding([("code", "a")]) == "cursor://anysphere.cursor-mcp/oauth/callback?code=a")
    }

    @Test func `an answer is added to the query, and cannot add another parameter`() throws {
        let uri = try RedirectURI("https://a.example/callback?x=1")
        #expect(
            uri.adding([("code", "a"), ("state", "b&code=c #é")])
                == "https://a.example/callback?x=1&code=a&state=b%26code%3Dc%20%23%C3%A9"
        )
        #expect(try RedirectURI("https://a.example").adding([("code", "a")]) == "https://a.example?code=a")
    }

    @Test func `a form has each parameter once`() throws {
        #expect(try FormEncoding.parameters(of: "a=1%202+3&b=&c") == ["a": "1 2 3"])
        for form in ["a=1&a=2", "a=1&%61=2", "a=%", "a=%zz", "a=%FF", String(repeating: "a&", count: 33)] {
            #expect(throws: OAuthError.self, "\(form)") { try FormEncoding.parameters(of: form) }
        }
    }
}
