import CLinux
import Glibc
import SystemIO

/// One end of a test connection: sends and receives whole messages, and waits without blocking a thread.
final class Stream: Sendable {
    /// The connection failed, as opposed to EOF.
    struct Failure: Error, Equatable {
        let code: CInt
    }

    let number: CInt

    init(owning descriptor: consuming Descriptor) { number = descriptor.release() }

    deinit { close(number) }

    static func connect(to address: SocketAddress) async throws -> Stream {
        Stream(owning: try await address.connect(within: .seconds(10)))
    }

    /// Returns two connected unix sockets.
    static func pair() -> (Stream, Stream) {
        var numbers: [CInt] = [0, 0]
        precondition(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &numbers) == 0)
        for number in numbers { CLinux_set_nonblocking(number) }
        return (Stream(owning: Descriptor(owning: numbers[0])), Stream(owning: Descriptor(owning: numbers[1])))
    }

    /// Returns two connected TCP sockets.
    static func tcpPair() async throws -> (Stream, Stream) {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let one = try await Stream.connect(to: listener.address)
        return (one, Stream(owning: try await listener.accept()))
    }

    /// Returns a second handle, so that one task can send while another receives.
    func duplicate() -> Stream { Stream(owning: Descriptor(owning: CLinux_duplicate(number))) }

    /// Returns a duplicate descriptor for a new owner. This one is closed on deallocation.
    func handOver() -> Descriptor { Descriptor(owning: CLinux_duplicate(number)) }

    func send(_ bytes: some Sequence<UInt8>) async throws {
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

    /// Receives the available bytes, at least one; empty at EOF.
    func receiveSome(atMost limit: Int = 65_536) async throws -> [UInt8] {
        var space = [UInt8](repeating: 0, count: limit)
        while true {
            let count = recv(number, &space, limit, 0)
            if count >= 0 { return Array(space.prefix(count)) }
            guard errno == EAGAIN else { throw Failure(code: errno) }
            try await Poller.shared.wait(for: .readable, of: number)
        }
    }

    /// Receives exactly `count` bytes, or fewer before EOF.
    func receive(_ count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try await receiveSome(atMost: min(65_536, count - bytes.count))
            if more.isEmpty { break }
            bytes += more
        }
        return bytes
    }

    func receiveToEnd() async throws -> [UInt8] { try await receive(.max) }

    /// True if a connection to an address is reset before the first byte, possibly during the handshake.
    static func isReset(by address: SocketAddress) async -> Bool {
        do {
            _ = try await connect(to: address).receiveSome()
            return false
        } catch let failure as Failure {
            return failure.code == ECONNRESET
        } catch SocketError.failed(_, _, let code) {
            return code == ECONNRESET
        } catch {
            return false
        }
    }

    func finish() { shutdown(number, CInt(SHUT_WR)) }

    /// Makes the close send RST.
    func makeAbortive() {
        var abortive = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &abortive, socklen_t(MemoryLayout<linger>.size))
    }
}

/// Bytes that depend on their position, so that a lost, repeated or swapped byte is detected.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return [UInt8](unsafeUninitializedCapacity: count + 8) { space, used in
        for position in stride(from: 0, to: count, by: 8) {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            UnsafeMutableRawBufferPointer(space).storeBytes(of: state, toByteOffset: position, as: UInt64.self)
        }
        used = count
    }
}
