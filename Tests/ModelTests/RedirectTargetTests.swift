import Model
import Testing

@Suite struct RedirectTargetTests {
    private static func target(_ location: String?, status: Int = 307, host: String = "127.0.0.1:8000")
        -> RedirectTarget?
    { RedirectTarget(status: status, location: location, host: host, current: "/api/mcp?x=1") }

    @Test(arguments: [
        ("/mcp/", "/mcp/"), ("http://127.0.0.1:8000/mcp/", "/mcp/"), ("HTTP://127.0.0.1:8000/a?b=c#d", "/a?b=c"),
        ("//127.0.0.1:8000/x", "/x"), ("mcp/", "/api/mcp/"), ("http://127.0.0.1:8000", "/"),
    ])
    func `a target at the same origin is a path`(location: String, path: String) {
        #expect(Self.target(location) == .path(path))
        #expect(Self.target(location, status: 301) == .path(path))
    }

    @Test(arguments: [
        "http://169.254.169.254/", "https://127.0.0.1:8000/mcp", "http://127.0.0.1:8001/mcp",
        "http://127.0.0.1:8000@evil.example/", "http://localhost:8000/mcp", "//evil.example/", "javascript:alert(1)",
        "/a b", "/é", "", "http://127.0.0.1:8000.evil.example/", "http://127.0.0.1/mcp",
    ])
    func `any other target is not followed`(location: String) {
        #expect(Self.target(location) == .other(SanitizedText(location, limit: 200)))
    }

    @Test func `the default port may be left out`() {
        #expect(Self.target("http://127.0.0.1/x", host: "127.0.0.1:80") == .path("/x"))
    }

    @Test func `only statuses that keep the method are followed`() {
        #expect(Self.target("/x", status: 303) == .other(SanitizedText("/x")))
        #expect(Self.target("/x", status: 200) == nil)
        #expect(Self.target(nil) == .other(SanitizedText("an unnamed place")))
    }
}
