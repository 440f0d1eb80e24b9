import FoundationEssentials
import Glibc
import SystemIO
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ListenerTests {
    private let folder = FileManager.default.temporaryDirectory.path() + "patchbay-\(UInt32.random(in: 0...UInt32.max))"
    private var path: String { "\(folder)/socket" }

    init() { mkdir(folder, 0o700) }

    private func status() -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 ? status : nil
    }

    @Test func `a listener on port 0 reports the port chosen by the kernel`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))

        let client = try await listener.address.connect(within: .seconds(5))
        let accepted = try await listener.accept()

        #expect(listener.address.port != 0)
        #expect(SocketAddress.peer(of: accepted.number) == SocketAddress.local(of: client.number))
    }

    @Test func `a listener on an address in use fails with inUse`() throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))

        #expect(throws: SocketError.inUse(listener.address)) { try Listener(on: listener.address) }
    }

    @Test func `a unix socket has mode 0600 for every umask`() throws {
        let listener = try Listener(on: .unix(path: path))
        defer { try? FileManager.default.removeItem(atPath: folder) }

        #expect(status().map { $0.st_mode & 0o777 } == 0o600)
        listener.close()

        #expect(status() == nil)
    }

    @Test func `the stale socket file of a terminated program is replaced`() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let dead = try SocketAddress.unix(path: path).makeSocket()
        try SocketAddress.unix(path: path).withRaw { #expect(bind(dead.number, $0, $1) == 0) }

        let listener = try Listener(on: .unix(path: path))
        _ = try await listener.address.connect(within: .seconds(5))
    }

    @Test func `a socket file with a listener is not replaced`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let listener = try Listener(on: .unix(path: path))

        #expect(throws: SocketError.inUse(.unix(path: path), by: getpid())) { try Listener(on: .unix(path: path)) }
        #expect(status() != nil)
        withExtendedLifetime(listener) {}
    }

    @Test func `a file that is not a socket is not replaced`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data("precious".utf8).write(to: URL(filePath: path))

        #expect(throws: SocketError.notASocket(path: path)) { try Listener(on: .unix(path: path)) }
        #expect(try Data(contentsOf: URL(filePath: path)) == Data("precious".utf8))
    }

    @Test func `closing does not remove the socket file of a successor`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let old = try Listener(on: .unix(path: path))
        unlink(path)
        let new = try Listener(on: .unix(path: path))

        old.close()

        #expect(status() != nil)
        withExtendedLifetime(new) {}
    }

    @Test func `cancellation ends the wait for a connection`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))

        let outcome = try await withTimeout(.milliseconds(20), clock: ContinuousClock()) {
            try await listener.accept().release()
        }

        #expect(outcome == nil)
    }
}
