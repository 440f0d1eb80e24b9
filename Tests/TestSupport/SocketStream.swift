import CLinux
import Glibc
package import SystemIO

/// One end of a test connection: sends and receives whole messages, and waits without blocking a thread.
package final class SocketStream: Sendable {
    /// The connection failed, as opposed to EOF.
    package struct Failure: Error, Equatable {
        package let code: CInt

        package init(code: CInt) { self.code = code }
    }

    package let number: CInt

    package init(owning descriptor: consuming Descriptor) { number = descriptor.release() }

    deinit { close(number) }

    package static func connect(to address: SocketAddress) async throws -> SocketStream {
        SocketStream(owning: try await address.connect(within: eventLimit))
    }

    /// Returns two connected unix sockets.
    package static func pair() -> (SocketStream, SocketStream) {
        var numbers: [CInt] = [0, 0]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        precondition(socketpair(AF_UNIX, kind, 0, &numbers) == 0)
        return (
            SocketStream(owning: Descriptor(owning: numbers[0])), SocketStream(owning: Descriptor(owning: numbers[1]))
        )
    }

    /// Returns two connected TCP sockets.
    package static func tcpPair() async throws -> (SocketStream, SocketStream) {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let one = try await SocketStream.connect(to: listener.address)
        return (one, SocketStream(owning: try await listener.accept()))
    }

    /// Returns a second handle, so that one task can send while another receives.
    package func duplicate() -> SocketStream { SocketStream(owning: Descriptor(owning: CLinux_duplicate(number))) }

    /// Returns a duplicate descriptor for a new owner. This one is closed on deallocation.
    package func handOver() -> Descriptor { Descriptor(owning: CLinux_duplicate(number)) }

    package func send(_ bytes: some Sequence<UInt8>) async throws { try await Self.send(bytes, over: number) }

    /// Receives the available bytes, at least one; empty at EOF.
    package func receiveSome(atMost limit: Int = 65_536) async throws -> [UInt8] {
        try await Self.receiveSome(atMost: limit, over: number)
    }

    /// Receives exactly `count` bytes, or fewer before EOF.
    package func receive(_ count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try await receiveSome(atMost: min(65_536, count - bytes.count))
            if more.isEmpty { break }
            bytes += more
        }
        return bytes
    }

    package func receiveToEnd() async throws -> [UInt8] { try await receive(.max) }

    /// True if a connection to an address is reset before the first byte, possibly during the handshake.
    package static func isReset(by address: SocketAddress) async -> Bool {
        do {
            _ = try await connect(to: address).receiveSome()
            return false
        } catch let failure as Failure {
            return failure.code == ECONNRESET
        } catch SocketError.failed(_, _, let code) {
            return code == ECONNRESET
        } catch { return false }
    }

    package func finish() { shutdown(number, CInt(SHUT_WR)) }

    /// Makes the close send RST.
    package func makeAbortive() {
        var abortive = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &abortive, socklen_t(MemoryLayout<linger>.size))
    }
}

extension SocketStream {
    /// Sends bytes over a non-blocking socket.
    fileprivate static func send(_ bytes: some Sequence<UInt8>, over number: CInt) async throws {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                try await Poller.shared.wait(for: .writable, of: number)
            } else {
                throw Failure(code: errno)
            }
        }
    }

    fileprivate static func receiveSome(atMost limit: Int, over number: CInt) async throws -> [UInt8] {
        var space = [UInt8](repeating: 0, count: limit)
        while true {
            let count = recv(number, &space, limit, 0)
            if count >= 0 { return Array(space.prefix(count)) }
            guard errno == EAGAIN else { throw Failure(code: errno) }
            try await Poller.shared.wait(for: .readable, of: number)
        }
    }
}

extension Connection {
    package func send(_ bytes: some Sequence<UInt8>) async throws {
        try await SocketStream.send(bytes, over: descriptor.number)
    }

    /// Receives `count` bytes; fewer at the end of the stream or after its failure.
    package func receive(_ count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            do {
                let limit = min(65_536, count - bytes.count)
                let more = try await SocketStream.receiveSome(atMost: limit, over: descriptor.number)
                if more.isEmpty { break }
                bytes += more
            } catch is SocketStream.Failure { break }
        }
        return bytes
    }
}
