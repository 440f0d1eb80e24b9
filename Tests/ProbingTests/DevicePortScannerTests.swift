import Glibc
import Logging
import Model
import SystemIO
import Synchronization
import Testing

@testable import Probing

@Suite struct DevicePortScannerTests {
    private let udid: UDID

    init() throws { udid = try #require(UDID("00008030-001A2B3C4D5E6F70")) }

    @Test func `a port with an unanswered dial has no listener`() async throws {
        let detector = ServiceDetector(dialer: Phone(answer: .never), timeout: .milliseconds(100))

        let failure = await #expect(throws: DialError.self) { try await detector.detect(route(9_876)) }

        #expect(failure?.reason == .timedOut)
    }

    @Test func `a port that accepts and stays silent has a listener`() async throws {
        let detector = ServiceDetector(dialer: Phone(answer: .silence), timeout: .milliseconds(100))

        #expect(try await detector.detect(route(9_876)).kind == .tcp)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a device that answers no dial has no endpoints`() async throws {
        let phone = Phone(answer: .never)
        let logger = Logger(label: "test")
        let ports = DevicePortScanner(ports: [9_876], dialer: phone, timeout: .milliseconds(100), logger: logger)
        ports.set(devices: [udid])
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await ports.run() }
            // The fourth dial begins after a complete round of requests.
            for await count in phone.dials where count == 4 { break }
            group.cancelAll()
        }

        let told = await ports.events.reduce(into: 0) { count, _ in count += 1 }
        #expect(told == 0)
    }

    private func route(_ port: UInt16) -> Route { .usb(USBRoute(udid: udid, port: port)) }

    /// A device on which all ports behave the same.
    private final class Phone: Dialer {
        enum Answer {
            case never
            /// The connection is accepted, and nothing is sent.
            case silence
        }

        /// The number of dials, reported after each one.
        let dials: AsyncStream<Int>
        private let answer: Answer
        private let state: Mutex<(count: Int, open: [CInt])>
        private let out: AsyncStream<Int>.Continuation

        init(answer: Answer) {
            self.answer = answer
            state = Mutex((0, []))
            (dials, out) = AsyncStream.makeStream()
        }

        deinit { for number in state.withLock({ $0.open }) { close(number) } }

        func dial(_ route: Route) async throws -> Connection {
            out.yield(
                state.withLock { state in
                    state.count += 1
                    return state.count
                }
            )
            switch answer {
            case .never:
                try await Promise<Void>().value()
                throw CancellationError()
            case .silence:
                var ends: [CInt] = [-1, -1]
                let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
                #expect(socketpair(AF_UNIX, type, 0, &ends) == 0)
                state.withLock { $0.open.append(ends[1]) }
                return Connection(descriptor: Descriptor(owning: ends[0]), halfClose: .propagates)
            }
        }
    }
}
