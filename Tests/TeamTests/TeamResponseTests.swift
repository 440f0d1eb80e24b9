import AccessControl
import FoundationEssentials
import Client
import Model
import Registry
import Samples
import Synchronization
import Testing

@testable import Team

/// The responses of a host that was taken over.
@Suite struct TeamResponseTests {
    /// Sends the same response to every request.
    private struct Host: HostConnector {
        let body: String

        func send(
            _ request: OutgoingRequest,
            to host: HostName,
            within timeout: Duration
        ) async throws -> any HostResponse { HostAnswer(200, body) }
    }

    /// ESC, BEL, a control character of C1 and a bidirectional override, as JSON escapes.
    private static let escapes = #"\u001b[31mred\u0007\u009b2J\u202e"#

    private let lab3: HostName
    private let shop: EndpointID

    init() throws {
        lab3 = HostName("lab3")
        shop = EndpointID("shop.lab3")
    }

    private func isSafe(_ endpoint: Endpoint) throws -> Bool {
        let document = String(decoding: try JSONCoding.encoder().encode(endpoint), as: UTF8.self)
        return ["\\u00", "\u{1B}", "\u{7}", "\u{9B}", "\u{202E}"].allSatisfy { !document.contains($0) }
    }

    /// The leases of a team whose other host sends the same response to every request.
    private func leases(_ body: String) -> TeamLeases {
        TeamLeases(LeaseService(), on: ListedHosts(own: "lab1"), proxy: TeamProxy(Host(body: body)))
    }

    private func problem(_ status: Int, _ body: String, type: String, isMCP: Bool = false) async throws -> Problem {
        let answer = HostAnswer(status, body, type: type)
        let problem = await #expect(throws: Problem.self) {
            try await TeamProxy.error(in: answer, from: lab3, isMCP: isMCP)
        }
        return try #require(problem)
    }

    @Test(arguments: ["other.lab2", "other.lab1", "other", "shop"])
    func `a probed endpoint has the requested ID, and text that is safe to print`(id: String) async throws {
        let text = Self.escapes
        let route = """
            {"via": "network", "address": "\(text)", "app": "\(text)", "approval": "approved", "interface": "\(text)",
            "interfaceIndex": 0, "port": 1, "host": "\(text)", "launchID": "secret", "mismatch": "\(text)"}
            """
        let host = Host(
            body: """
                {"id": "\(id)", "kind": "\(text)", "app": "\(text)", "name": "\(text)", "version": "\(text)",
                "location": {"deviceName": "\(text)", "host": "\(text)"}, "state": "online", "reason": "\(text)",
                "approval": "approved", "routes": [\(route)], "hostRoutes": [\(route)], "txt": [{"key": "\(text)"}],
                "sources": ["config"], "server": "\(text)", "capabilities": ["\(text)"], "limits": ["\(text)"],
                "formerIDs": ["old.lab2"], "host": {"name": "lab2"}, "launchID": "secret",
                "firstSeenAt": "2026-11-23T22:07:00.245Z"}
                """
        )

        let endpoint = try await TeamProxy(host).probe(shop, on: lab3, for: .broker)

        #expect(endpoint.id == shop && endpoint.host == HostStatus(name: lab3) && endpoint.routes.isEmpty)
        #expect(endpoint.formerIDs?.map(\.text) == ["old.lab3"])
        #expect(endpoint.reason == "\u{FFFD}[31mred\u{FFFD}\u{FFFD}2J\u{FFFD}")
        #expect(endpoint.hostRoutes?.count == 1 && endpoint.txt.entries.isEmpty && endpoint.launchID == nil)
        #expect(try isSafe(endpoint))
    }

    @Test func `texts and lists of a probed endpoint are limited as those of a listed one`() throws {
        let long = String(repeating: "x", count: 5_000)
        var endpoint = Endpoint(
            id: "shop",
            kind: .mcp,
            app: SanitizedText(long, limit: .max),
            name: SanitizedText(long, limit: .max),
            state: .suspect,
            reason: long,
            approval: .approved,
            sources: Array(repeating: .config, count: 100),
            firstSeenAt: Date(timeIntervalSince1970: 0),
            lastSeenAt: nil
        )
        endpoint.capabilities = Array(repeating: long, count: 1_000)
        endpoint.limits = endpoint.capabilities

        let listed = endpoint.on(lab3, as: shop)

        #expect(listed.app.text.utf8.count == 155 && listed.name.text.utf8.count == 63)
        #expect(listed.reason?.utf8.count == 200 && listed.sources.count == 16)
        #expect(listed.capabilities == Array(repeating: String(long.prefix(200)), count: 64))
        #expect(listed.limits == listed.capabilities)
        #expect(listed.on(lab3) == listed)
    }

    @Test func `a document that cannot be read is a problem without its text`() async throws {
        let host = Host(body: #"{"id": "\#(Self.escapes)"}"#)

        let problem = await #expect(throws: Problem.self) {
            try await TeamProxy(host).probe(shop, on: lab3, for: .broker)
        }

        #expect(problem?.detail == "the host lab3 sends an invalid document" && problem?.code == .unavailable)
    }

    @Test(arguments: [
        ("\(escapes)", "l.lab3", Int.max, 28_800, Int.min, 0), ("l1.lab2", "l.lab3", 0, 1, Int.max, 1_000),
        ("l7", "l7.lab3", 60, 60, 2, 2),
    ])
    func `a lease of another host has an ID of that host, and numbers in their ranges`(
        id: String,
        expectedID: String,
        seconds: Int,
        expectedSeconds: Int,
        waiting: Int,
        expectedWaiting: Int
    ) async throws {
        let lease = """
            {"id": "\(id)", "endpoint": "shop", "holder": "a", "own": true, "seconds": \(seconds),
            "createdAt": "2026-11-23T22:07:00.245Z", "expiresAt": "2026-11-23T22:17:00.245Z", "waiting": \(waiting)}
            """
        let endpoint = Endpoint.sample(shop)
        let taken = try await leases(lease)
            .take(endpoint, for: .broker, seconds: 60, wait: .zero, note: nil, renewing: nil)
        let listed = try await leases(#"{"schema": 1, "leases": [\#(lease)]}"#).lease(of: endpoint, for: .broker)

        for shown in [taken, try #require(listed)] {
            #expect(shown.id == expectedID && shown.endpoint == shop)
            #expect(shown.seconds == expectedSeconds && shown.waiting == expectedWaiting)
        }
    }

    @Test(arguments: [
        "application/problem+json", "Application/Problem+Json", " application/problem+json", "application/json",
        "text/plain", "",
    ])
    func `an error of another host has the host's name, whatever its media type`(type: String) async throws {
        let body = String(
            decoding: try JSONCoding.encoder().encode(Problem(.forbidden, "no", hint: "ask")),
            as: UTF8.self
        )
        for isMCP in [true, false] {
            let problem = try await problem(403, body, type: type, isMCP: isMCP)
            #expect(problem.detail == "on the host lab3: no" && problem.hint == "on lab3: ask")
            #expect(problem.code == .forbidden)
        }
    }

    @Test(arguments: [301, 307, 400, 401, 404, 500, 599])
    func `a redirect, and an error without a problem, is reported with the host's name`(status: Int) async throws {
        for body in ["", "Patchbay says no", #"{"error": {}}"#] {
            for isMCP in [true, false] {
                let problem = try await problem(status, body, type: "text/html", isMCP: isMCP)
                #expect(problem.detail == "the host lab3 answers with the status \(status)")
                #expect(problem.code == .unavailable)
            }
        }
    }

    @Test func `a client learns from status 405 that the MCP server of another host has no stream`() async throws {
        #expect(try await problem(405, "", type: "", isMCP: true).code == .methodNotAllowed)
    }

    @Test func `an error of MCP keeps its code and data, and gets the host's name`() async throws {
        let body =
            #"{"jsonrpc": "2.0", "id": 7, "error": {"code": -32600, "message": "no\u001b", "data": [1]}, "detail": "x"}"#

        let error = try await TeamProxy.error(in: HostAnswer(404, body), from: lab3, isMCP: true)

        #expect(
            error == [
                "jsonrpc": "2.0", "id": 7,
                "error": ["code": -32600, "message": "on the host lab3: no\u{FFFD}", "data": [1]],
            ]
        )
        #expect(try await problem(404, body, type: "application/json").detail.contains("lab3"))
    }

    @Test func `a response that is no error is passed on unread`() async throws {
        for status in [200, 202, 204] {
            let answer = HostAnswer(status, #"{"error": {"message": "x"}}"#)
            #expect(try await TeamProxy.error(in: answer, from: lab3, isMCP: true) == nil)
            #expect(!answer.isRead)
        }
    }
}
