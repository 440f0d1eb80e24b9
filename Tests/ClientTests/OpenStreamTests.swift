import Client
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

@Suite struct OpenStreamTests {
    private static let head =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: patchbay-stream/1\r\n\r\n"
    private let target = TunnelTarget.device(udid: SampleDocuments.udid, port: 22)

    @Test(arguments: [[head + "hello"], [head, "hello"], [head + "hel", "lo"]])
    func `bytes behind the response arrive before the end of the stream`(pieces: [String]) async throws {
        try await ScriptedBroker.with(.ended(pieces)) { broker, client in
            // The end may arrive together with the bytes, or after the upgrade.
            for _ in 0..<20 {
                let stream = SocketStream(
                    owning: Descriptor(owning: try await client.streams.open(to: target).release().number)
                )
                #expect(try await stream.receiveToEnd() == Array("hello".utf8))
            }
            let request = try #require(broker.requests.first)
            #expect(request.hasPrefix("GET /v1/streams?device=00008101-000123456789ABCD&port=22 HTTP/1.1\r\n"))
            #expect(request.contains("\r\nUpgrade: patchbay-stream/1\r\n") && !request.contains("close"))
        }
    }

    @Test func `a refusal throws the problem, which has the reason of a failed dial`() async throws {
        let problem = Problem(DialError(.deviceAbsent, "the phone is not attached; plug it in"))
        let answer = ScriptedBroker.json(
            try SampleDocuments.json(problem),
            status: "503 Service Unavailable",
            type: "application/problem+json"
        )
        try await ScriptedBroker.with(.open([answer])) { _, client in
            let error = await #expect(throws: ClientError.self) { _ = try await client.streams.open(to: target) }
            #expect(error == .refused(problem))
            #expect(error.map { DialError($0) } == DialError(.deviceAbsent, "the phone is not attached; plug it in"))
        }
    }

    @Test func `a check succeeds if only the upgrade is missing, and throws any other refusal`() async throws {
        for code in [Problem.Code.upgradeRequired, .forbidden, .leased] {
            let problem = Problem(code, "no")
            let answer = ScriptedBroker.json(
                try SampleDocuments.json(problem),
                status: "\(problem.status) \(problem.title)",
                type: "application/problem+json"
            )
            try await ScriptedBroker.with(.open([answer])) { broker, client in
                let error: ClientError?
                do {
                    try await client.streams.check(to: target)
                    error = nil
                } catch let failure as ClientError { error = failure }

                #expect(error == (code == .upgradeRequired ? nil : .refused(problem)))
                #expect(broker.requests.first?.lowercased().contains("upgrade") == false)
            }
        }
    }

    @Test func `a broker that closes without an answer is a lost connection`() async throws {
        try await ScriptedBroker.with(.pieces([])) { _, client in
            let error = await #expect(throws: ClientError.self) { _ = try await client.streams.open(to: target) }
            guard case .connectionLost? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func `a cancelled task stops waiting for the broker`() async throws {
        try await ScriptedBroker.with(.silence) { broker, client in
            let opening = Task { [target] in _ = try await client.streams.open(to: target) }
            while broker.requests.isEmpty { await Task.yield() }
            opening.cancel()
            await #expect(throws: CancellationError.self) { try await opening.value }
        }
    }

    @Test func `each refusal becomes a reason of a failed dial`() {
        func reason(_ code: Problem.Code) -> DialError.Reason { DialError(.refused(Problem(code, "no"))).reason }
        #expect(reason(.notFound) == .noRoute)
        #expect(reason(.forbidden) == .forbidden && reason(.unauthorized) == .forbidden)
        #expect(reason(.leased) == .leased)
        #expect(reason(.limit) == .limit)
        #expect(reason(.internalError) == .failed)
        #expect(DialError(.busy(path: "/x")).description.hasSuffix("; try again in a second"))
    }
}
