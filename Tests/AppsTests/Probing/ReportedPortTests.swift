import Glibc
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// Ports that a phone reports for its apps.
@Suite(.scratchFolder, .timeLimit(.minutes(2))) struct ReportedPortTests {
    private let scratch = ScratchFolder.current
    private let udid = UDID(androidSerial: "R58M12ABCDE").unsafelyUnwrapped

    /// Starts a server that answers each request with a text.
    private func server(_ answer: @escaping @Sendable (_ port: UInt16) -> String) throws -> UInt16 {
        let own = Mutex(UInt16(0))
        let server = try LoopbackServer(in: scratch) { connection in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            guard recv(connection, &buffer, buffer.count, 0) > 0 else { return }
            let body = answer(own.withLock { $0 })
            let text =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            _ = BlockingStream.send(Array(text.utf8)[...], to: connection)
        }
        own.withLock { $0 = server.port }
        return server.port
    }

    private static func health(port: UInt16) -> String {
        #"{"status":"ok","port":\#(port),"auth":"session-token","discovery":"android-nsd"}"#
    }

    private func report(_ port: UInt16, token: String? = "a", user: UInt32 = 10_234) -> PhonePort {
        let announcement = token.map { AppAnnouncement(kind: .appreveal, port: port, secret: $0, processID: 77) }
        return PhonePort(port: port, user: user, app: SanitizedText("com.example.shop"), announcement: announcement)
    }

    private final class Seen: Sendable {
        let sightings = Mutex<[Sighting]>([])

        func read(_ events: AsyncStream<SightingEvent>) async {
            for await case .seen(let sighting) in events { sightings.withLock { $0.append(sighting) } }
        }
    }

    /// Runs a scanner of one phone, whose ports are those of this host.
    private func withScanner(
        probing ports: [UInt16] = [],
        _ body:
            @escaping @Sendable (DevicePortScanner, _ seen: @escaping @Sendable () -> [Sighting]) async throws -> Void
    ) async throws {
        let dialer = FakeDialer { route in
            try await NetworkPlanner().dial(.network(NetworkRoute(address: "127.0.0.1", port: route.port)))
        }
        let scanner = DevicePortScanner(ports: ProbePorts(ports), dialer: dialer, logger: .quiet)
        let seen = Seen()
        scanner.set(devices: [udid])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await scanner.run() }
            group.addTask { await seen.read(scanner.events) }
            defer { group.cancelAll() }
            try await body(scanner) { seen.sightings.withLock { $0 } }
        }
    }

    @Test func `a reported server is found at once with its package, and its token is given once`() async throws {
        let port = try server(Self.health)
        let key = USBRoute(udid: udid, port: port)
        try await withScanner { [udid] scanner, seen in
            scanner.set([report(port)], of: udid)
            let sighting = try await eventually("it is seen") { seen().first }
            #expect(
                (sighting.kind, sighting.app.text, sighting.appIsBundleID) == (.appreveal, "com.example.shop", true)
            )
            #expect(scanner.takeVerified(key) == report(port))
            #expect(scanner.takeVerified(key) == nil)

            scanner.set([report(port)], of: udid)
            #expect(scanner.takeVerified(key) == nil, "nothing has changed")
            scanner.set([report(port, token: "b")], of: udid)
            try await eventually("the token of the next launch is given") {
                scanner.takeVerified(key)?.announcement?.reveal() == "b"
            }
        }
    }

    @Test func `a server that names another port, or is not the announced one, gets no token`() async throws {
        let other = try server { Self.health(port: $0 &+ 1) }
        let unknown = try server { _ in "{}" }
        try await withScanner { [udid] scanner, seen in
            scanner.set([report(other), report(unknown)], of: udid)
            try await eventually("the first is seen") { seen().contains { $0.port == other } }
            try await Task.sleep(for: .milliseconds(500))
            #expect(scanner.takeVerified(USBRoute(udid: udid, port: other)) == nil)
            #expect(scanner.takeVerified(USBRoute(udid: udid, port: unknown)) == nil)
            #expect(!seen().contains { $0.port == unknown }, "an unknown server on a port that only the phone named")
        }
    }

    @Test func `the end of a reported app is seen at once`() async throws {
        let server = try LoopbackServer(in: scratch) { connection in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            _ = recv(connection, &buffer, buffer.count, 0)
            _ = BlockingStream.send(Array("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".utf8)[...], to: connection)
        }
        let announcement = AppAnnouncement(kind: .dartVM, port: server.port, secret: "c=", processID: 77)
        let reported = PhonePort(port: server.port, user: 10_234, announcement: announcement)
        try await withScanner { [udid] scanner, seen in
            scanner.set([reported], of: udid)
            try await eventually("the VM service is seen") { seen().contains { $0.kind == .dartVM } }
            server.stop()
            scanner.set([], of: udid)
            let count = seen().count
            try await Task.sleep(for: .milliseconds(1_500))
            #expect(seen().count == count)
        }
    }
}
