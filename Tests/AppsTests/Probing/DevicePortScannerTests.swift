import Model
import Samples
import TestSupport
import Testing

@testable import Apps

@Suite struct DevicePortScannerTests {
    private let udid = UDID("00008030-001A2B3C4D5E6F70")

    @Test func `a port with an unanswered dial has no listener`() async throws {
        let detector = ServiceDetector(dialer: FakeDialer.silent(), timeout: .milliseconds(100))

        let failure = await #expect(throws: DialError.self) { try await detector.detect(route(9_876)) }

        #expect(failure?.reason == .timedOut)
    }

    @Test func `a port that accepts and stays silent has a listener`() async throws {
        let detector = ServiceDetector(dialer: FakeDialer.connected(), timeout: .milliseconds(100))

        #expect(try await detector.detect(route(9_876)).kind == .tcp)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a device that answers no dial has no endpoints`() async throws {
        let dialer = FakeDialer.silent()
        let ports = DevicePortScanner(
            ports: ProbePorts([9_876]),
            dialer: dialer,
            timeout: .milliseconds(100),
            logger: .quiet
        )
        ports.set(devices: [udid])
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await ports.run() }
            // The fourth dial begins after a complete round of requests.
            for await count in dialer.begun.stream where count == 4 { break }
            group.cancelAll()
        }

        let told = await ports.events.reduce(into: 0) { count, _ in count += 1 }
        #expect(told == 0)
    }

    /// A server that accepts one client drops the old one when another connects.
    @Test(.timeLimit(.minutes(1)))
    func `a port with an open stream is not dialled, whether or not its server is known`() async throws {
        let dialer = FakeDialer.silent()
        let (asked, continuation) = AsyncStream.makeStream(of: UInt16.self)
        let ports = DevicePortScanner(
            ports: ProbePorts([9_876, 9_877]),
            dialer: dialer,
            timeout: .milliseconds(100),
            isInUse: {
                continuation.yield($0.port)
                return $0.port == 9_876
            },
            logger: .quiet
        )
        ports.set(devices: [udid])
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await ports.run() }
            // The second question about the port belongs to the second scan.
            var questions = 0
            for await port in asked where port == 9_876 {
                questions += 1
                if questions == 2 { break }
            }
            group.cancelAll()
        }

        #expect(!dialer.routes.isEmpty)
        #expect(dialer.routes.allSatisfy { $0.port == 9_877 })
    }

    private func route(_ port: UInt16) -> Route { .usb(USBRoute(udid: udid, port: port)) }
}
