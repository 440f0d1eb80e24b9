import Glibc
import Model
import Synchronization
import SystemIO

/// Turns a tunnel's local address into listening sockets.
enum TunnelBinding {
    /// How often another port is tried that is free on both loopback addresses.
    private static let attempts = 64

    /// - Parameters:
    ///   - local: The address as it was asked for.
    ///   - port: For an address with port 0: the port it had before, and gets again or not at all.
    /// - Returns: One, or two where both loopback addresses are meant.
    /// - Throws: `TunnelError.inUse`, `.cannotListen`, `.badLocal`.
    static func listen(on local: ListenAddress, port: UInt16? = nil) throws(TunnelError) -> [Listener] {
        switch local {
        case .unix(let path):
            return [try listener(.unix(path: path), for: local)]
        case .tcp(nil, let asked), .tcp("localhost"?, let asked):
            let wanted = asked == 0 ? port ?? 0 : asked
            return wanted == 0 ? try onFreePort(for: local) : try onBoth(wanted, for: local)
        case .tcp(let host?, let asked):
            guard let address = SocketAddress(numeric: host, port: asked == 0 ? port ?? 0 : asked) else {
                throw .badLocal(
                    local,
                    "\"\(SanitizedText(host))\" is not a numeric address of this machine; write it like 127.0.0.1"
                )
            }
            return [try listener(address, for: local)]
        }
    }

    /// 127.0.0.1 and ::1; the first alone where the kernel has no IPv6.
    private static func onBoth(_ port: UInt16, for local: ListenAddress) throws(TunnelError) -> [Listener] {
        let first = try listener(.ipv4(INADDR_LOOPBACK, port: port), for: local)
        return [first] + (try second(first.address.port ?? port, for: local).map { [$0] } ?? [])
    }

    private static func onFreePort(for local: ListenAddress) throws(TunnelError) -> [Listener] {
        // A port that is free on one address and not on the other is kept until the end, or it would be offered again.
        var halves: [Listener] = []
        for _ in 0..<attempts {
            let first = try listener(.ipv4(INADDR_LOOPBACK, port: 0), for: local)
            do {
                return [first] + (try second(first.address.port ?? 0, for: local).map { [$0] } ?? [])
            } catch .inUse {
                halves.append(first)
            }
        }
        throw .cannotListen(local, "no port is free on both 127.0.0.1 and ::1")
    }

    private static func second(_ port: UInt16, for local: ListenAddress) throws(TunnelError) -> Listener? {
        do {
            return try Listener(on: .ipv6(1, port: port, scope: 0))
        } catch SocketError.failed(_, _, let code) where [EAFNOSUPPORT, EADDRNOTAVAIL].contains(code) {
            return nil  // IPv6 is compiled out, or off by sysctl.
        } catch {
            throw translated(error, local)
        }
    }

    private static func listener(_ address: SocketAddress, for local: ListenAddress) throws(TunnelError) -> Listener {
        do {
            return try Listener(on: address)
        } catch {
            throw translated(error, local)
        }
    }

    private static func translated(_ error: any Error, _ local: ListenAddress) -> TunnelError {
        switch error {
        case SocketError.inUse: .inUse(local)
        case SocketError.failed(_, _, let code) where code == EACCES || code == EPERM:
            .cannotListen(local, "\(SocketError.words(for: code)); ports up to 1023 are root's")
        case SocketError.failed(_, _, EADDRNOTAVAIL):
            .cannotListen(local, "this machine does not have that address; see `ip address`")
        case SocketError.failed(_, _, ENOENT):
            .cannotListen(local, "its folder does not exist")
        case SocketError.notASocket(let path): .cannotListen(local, "\(path) exists and is not a socket")
        case SocketError.failed(_, _, let code): .cannotListen(local, SocketError.words(for: code))
        default: .cannotListen(local, "\(error)")
        }
    }
}

/// How many dials of a listening socket may be under way, counted for the one task that accepts.
final class DialPlaces: Sendable {
    private struct State {
        var free: Int
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(free: count)) }

    /// Waits for a place and takes it. One task at a time may wait.
    ///
    /// Waiting does not end with cancellation; it does with the next dial, which is cancelled too.
    func take() async {
        if takeNow() { return }
        await withCheckedContinuation { continuation in
            let isTaken = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                precondition(state.waiting == nil, "two tasks wait for a place")
                state.waiting = continuation
                return false
            }
            if isTaken { continuation.resume() }
        }
    }

    func giveBack() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            // Handed on without a gap.
            if let next = state.waiting.take() { return next }
            state.free += 1
            return nil
        }
        next?.resume()
    }

    private func takeNow() -> Bool {
        state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
    }
}
