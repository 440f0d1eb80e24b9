import AccessControl
import Glibc
import NIOCore
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import API

/// The fetcher with a server on loopback in the place of a public address.
@Suite(.scratchFolder) struct ClientMetadataFetcherTests {
    private let scratch = ScratchFolder.current
    private static let good = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    private let secured = SharedList()

    /// The names for which TLS was added, and the addresses that were dialled.
    private final class SharedList: Sendable {
        private let names = Mutex([String]())
        var all: [String] { names.withLock { $0 } }
        func add(_ name: String) { names.withLock { $0.append(name) } }
    }

    private func fetch(
        _ reply: String,
        at found: [String] = ["8.8.8.8"],
        timeout: Duration = .seconds(20)
    ) async throws -> [UInt8] {
        let server = try LoopbackServer(in: scratch) { connection in
            var buffer = [UInt8](repeating: 0, count: 8_192)
            _ = recv(connection, &buffer, buffer.count, 0)
            _ = reply.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
            if reply.isEmpty { _ = recv(connection, &buffer, buffer.count, 0) }
        }
        var fetcher = ClientMetadataFetcher()
        fetcher.timeout = timeout
        fetcher.lookUp = { host in
            #expect(host == "app.example")
            return found.compactMap { SystemIO.SocketAddress(numeric: $0, port: 443) }
        }
        fetcher.dialed = { [secured] address in
            secured.add("\(address)")
            return SystemIO.SocketAddress.ipv4(0x7F00_0001, port: server.port)
        }
        fetcher.security = { [secured] in { _, host in secured.add(host) } }
        defer { server.stop() }
        do { return try await fetcher.fetch(ClientMetadataURL("https://app.example/client.json")) } catch {
            secured.add("accepted \(server.accepted)")
            throw error
        }
    }

    @Test func `a document is read over TLS for its host, from the address that was checked`() async throws {
        #expect(try await fetch(Self.good) == Array("{}".utf8))
        #expect(secured.all == ["8.8.8.8:443", "app.example"])
    }

    @Test(arguments: [
        [], ["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:8.8.8.8"], ["fd00::1"],
        ["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"],
    ])
    func `a host with one address inside is not dialled`(found: [String]) async {
        await #expect(throws: OAuthError.self) { try await fetch(Self.good, at: found) }
        #expect(secured.all == ["accepted 0"])
    }

    @Test(arguments: [
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16385\r\n\r\n"
            + String(repeating: " ", count: 16_385),
        "SSH-2.0-OpenSSH_9.2\r\n",
    ])
    func `a redirect, an error, another type and a large or incomplete body are refused`(reply: String) async {
        await #expect(throws: OAuthError.self) { try await fetch(reply) }
        #expect(secured.all.last == "accepted 1")
    }

    @Test func `a server that is silent is given up`() async {
        let error = await #expect(throws: OAuthError.self) { try await fetch("", timeout: .milliseconds(200)) }
        #expect(error?.description.hasSuffix("did not arrive in time") == true)
    }
}
