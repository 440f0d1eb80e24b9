import HTTPTypes
import Model
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import API

@Suite struct CORSTests {
    private static let origin = "http://localhost:6274"

    private func preflight(_ fields: [(String, String)]) throws -> HTTPRequest {
        var request = HTTPRequest(method: .options, scheme: "http", authority: "localhost", path: "/mcp")
        for (name, value) in fields {
            request.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return request
    }

    private func status(answers: Bool, host: String = "localhost", _ fields: [(String, String)]) throws -> Int {
        let validator = RequestValidator(
            hostHeaderRule: .loopback(port: 7_282),
            allowedOrigins: [Self.origin],
            answersPreflights: answers
        )
        var request = try preflight(fields)
        request.authority = host
        do { try validator.validate(request) } catch { return error.status }
        return 200
    }

    @Test func `only a preflight of an allowed origin is accepted`() throws {
        let method = ("Access-Control-Request-Method", "POST")
        let page = ("Origin", Self.origin)

        #expect(try status(answers: true, [page, method]) == 200)
        #expect(try status(answers: true, [page, method, ("Sec-Fetch-Site", "cross-site")]) == 200)
        #expect(try status(answers: false, [page, method]) == 405)
        #expect(try status(answers: true, [page]) == 405)
        #expect(try status(answers: true, [method]) == 405)
        #expect(try status(answers: true, [page, page, method]) == 405)
        for other in ["https://evil.test", "null", "http://localhost:7282", "\(Self.origin)/", ""] {
            #expect(try status(answers: true, [("Origin", other), method]) == 405)
            #expect(try status(answers: true, [page, ("Origin", other), method]) == 405)
        }
        #expect(try status(answers: true, host: "evil.test", [page, method]) == 421)
    }

    @Test func `a preflight is answered with the requested headers, and never with credentials`() throws {
        let request = try preflight([
            ("Access-Control-Request-Headers", "authorization, Mcp-Param-City,é,"),
            ("Access-Control-Request-Private-Network", "true"),
        ])
        let fields = CORS.preflightHeaders(for: request)

        #expect(fields[.accessControlAllowMethods] == "GET, POST, PUT, PATCH, DELETE")
        #expect(fields[.accessControlAllowHeaders] == "authorization, mcp-param-city")
        #expect(fields[try #require(HTTPField.Name("Access-Control-Allow-Private-Network"))] == "true")
        #expect(fields[.accessControlAllowCredentials] == nil)
        let plain = CORS.preflightHeaders(for: try preflight([]))
        #expect(plain[.accessControlAllowHeaders] == nil)
        #expect(!plain.contains { $0.name.canonicalName.hasSuffix("private-network") })
    }

    /// Sends requests with these origins to a `CORSHandler`, and returns the heads of its responses.
    private func responses(to origins: [[String]]) throws -> [HTTPHeaders] {
        let channel = EmbeddedChannel(handler: CORSHandler(allowedOrigins: [Self.origin, "https://two.test"]))
        for origins in origins {
            var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
            for origin in origins { head.headers.add(name: "Origin", value: origin) }
            try channel.writeInbound(HTTPServerRequestPart.head(head))
            try channel.writeInbound(HTTPServerRequestPart.end(nil))
        }
        var heads: [HTTPHeaders] = []
        for _ in origins {
            let head = HTTPResponseHead(version: .http1_1, status: .notFound)
            try channel.writeOutbound(HTTPServerResponsePart.head(head))
            try channel.writeOutbound(HTTPServerResponsePart.end(nil))
            while let part = try channel.readOutbound(as: HTTPServerResponsePart.self) {
                if case .head(let head) = part { heads.append(head.headers) }
            }
        }
        return heads
    }

    @Test func `each response of a connection is for the origin of its own request`() throws {
        let origins = [
            [Self.origin], [], ["https://evil.test"], ["https://two.test"], [Self.origin, "https://two.test"],
        ]

        let heads = try responses(to: origins)

        #expect(
            heads.map { $0["Access-Control-Allow-Origin"] } == [[Self.origin], [], [], ["https://two.test"], []]
        )
        #expect(heads.allSatisfy { $0["Vary"] == ["Origin"] && !$0.contains(name: "Access-Control-Allow-Credentials") })
        #expect(heads[0].first(name: "Access-Control-Expose-Headers")?.contains("Mcp-Session-Id") == true)
        #expect(!heads[1].contains(name: "Access-Control-Expose-Headers"))
    }
}
