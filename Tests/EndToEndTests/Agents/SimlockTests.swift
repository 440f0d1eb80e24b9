import Model
import TestSupport
import Testing

/// The HTTP API of simlock, played by a server written from its source.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct SimlockTests {
    private let scratch = ScratchFolder.current

    /// The steps of a lease, each with the request that simlock must receive, and a part of the result.
    private static let calls: [(words: [String], request: String, result: String)] = [
        (["status"], "GET /v1/status", #""health":"running""#),
        (["catalog", "platform=ios"], "GET /v1/catalog?platform=ios", #""models":["iPhone 17 Pro"]"#),
        (
            ["request_device", "platform=ios", "device=iPhone 17 Pro", "ttlMs=60000"],
            #"POST /v1/lease-requests {"platform":"ios","device":"iPhone 17 Pro","ttlMs":60000}"#,
            #""state":"queued""#
        ),
        (
            ["lease_request", "request=req_1", "wait=1"], "GET /v1/lease-requests/req_1?wait=1",
            #""state":"granted""#
        ),
        (["renew", "lease=lse_9f2c"], "POST /v1/leases/lse_9f2c/renew {}", #""leaseId":"lse_9f2c""#),
        (["lease", "lease=lse_9f2c"], "GET /v1/leases/lse_9f2c", #""udid":"7A1B2C3D"#),
        (["release", "lease=lse_9f2c"], "DELETE /v1/leases/lse_9f2c", ""),
    ]

    private static func requests(to server: Program) -> [String] {
        server.output.filter { $0.hasPrefix("request: ") }
            .compactMap { try? JSON(parsing: String($0.dropFirst("request: ".count))).string }
    }

    @Test func `a device is leased and released with the token of an agent, and errors are told`() async throws {
        let script = "\(TestSupportFolder.sources)/sampleapp.py"
        let server = try await Program("python3", [script, "--role", "simlock"], in: scratch)
        let port = try await server.waitForLine("listening on ").split(separator: " ").last ?? ""
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        _ = try await broker.ask("add", "Farm", "127.0.0.1:\(port)", "--kind", "simlock")
        try await eventually("simlock is recognised") {
            try await broker.endpoints().first { $0.id.text == "farm" }?.state == .online
        }
        let refused = try await broker.start("call", "farm", "status")
        #expect(try await refused.exitStatus() != .exited(0))
        try await broker.setSecret("slk_test", of: "farm")

        for call in Self.calls {
            let command = try await broker.start(["call", "farm"] + call.words)
            #expect(try await command.exitStatus() == .exited(0))
            #expect(command.log.contains(call.result), "\(call.words): \(command.log)")
            try await eventually("\(call.words) is received") { Self.requests(to: server).contains(call.request) }
        }
        for (words, error) in [
            (["cancel_request", "request=req_1"], "HTTP status 409: Request already granted lease lse_9f2c"),
            (["lease", "lease=lse_9f2c"], "HTTP status 404: Unknown lease: lse_9f2c"),
        ] {
            let failed = try await broker.start(["call", "farm"] + words)
            #expect(try await failed.exitStatus() == .exited(1))
            #expect(failed.log.contains(error), "\(failed.log)")
        }
    }
}
