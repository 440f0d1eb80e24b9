import HTTPTypes
import Testing

@testable import API

/// The headers of a host that was taken over.
@Suite struct HostResponseHeadersTests {
    private static func text(_ headers: HostResponseHeaders) -> [String] {
        headers.fields.map { "\($0.name.canonicalName): \($0.value)" }
    }

    @Test(arguments: [
        "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Content-Security-Policy",
        "WWW-Authenticate",
        "Location", "Clear-Site-Data", "Patchbay-Secret", "Set-Cookie", "Refresh", "Link", "Alt-Svc",
        "Strict-Transport-Security", "Content-Encoding", "Content-Disposition", "X-New-Header",
    ]) func `a header that no route needs is dropped and counted`(name: String) {
        let headers = HostResponseHeaders([("Content-Type", "application/json"), (name, "x"), (name.lowercased(), "y")])

        #expect(Self.text(headers) == ["content-type: application/json"])
        #expect(headers.droppedCount == 2)
    }

    @Test func `the headers of an answer pass, and those of one connection are no finding`() {
        let headers = HostResponseHeaders([
            ("content-type", "text/event-stream"), ("Content-Length", "7"), ("Mcp-Session-Id", "s"),
            ("Retry-After", "5"),
            ("Connection", "keep-alive"), ("Date", "now"), ("Cache-Control", "public"), ("X-Content-Type-Options", "x"),
        ])

        #expect(
            Self.text(headers) == [
                "content-type: text/event-stream", "content-length: 7", "mcp-session-id: s", "retry-after: 5",
            ]
        )
        #expect(headers.droppedCount == 0)
    }

    @Test(arguments: [
        "text/html", "text/html; charset=utf-8", "image/svg+xml", "application/javascript", "application/xhtml+xml", "",
        ";",
        "application/json, text/html",
    ]) func `a media type that no route has is replaced and counted`(type: String) {
        let headers = HostResponseHeaders([("Content-Type", type)])

        #expect(Self.text(headers) == ["content-type: application/octet-stream"])
        #expect(headers.droppedCount == 1)
    }

    @Test func `the first of several values counts, without parameters`() {
        let headers = HostResponseHeaders([
            ("Content-Type", "Application/JSON; charset=utf-7"), ("content-type", "text/html"),
        ])

        #expect(Self.text(headers) == ["content-type: application/json"])
        #expect(headers.droppedCount == 1)
    }
}
