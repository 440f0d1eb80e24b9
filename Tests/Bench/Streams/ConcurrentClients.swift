import Glibc
import SystemIO

/// Concurrent clients on one thread: each connects, sends a byte and waits for its echo.
struct ConcurrentClients {
    private enum State {
        case connecting
        case waiting
        case echoed
        case failed
    }

    private var members: [pollfd] = []
    private var states: [State] = []
    private var owners: [Owner] = []
    private var words: [String: Int] = [:]

    /// Starts to connect all clients.
    init(_ count: Int, through address: AppAddress) throws {
        for _ in 0..<count {
            let owner = Owner(try address.start())
            members.append(pollfd(fd: owner.number, events: Int16(POLLOUT), revents: 0))
            owners.append(owner)
        }
        states = [State](repeating: .connecting, count: count)
    }

    var echoed: Int { states.count { $0 == .echoed } }

    /// The causes of the failures with their counts.
    var causes: String {
        let silent = states.count { $0 == .connecting || $0 == .waiting }
        let all = words.merging(silent == 0 ? [:] : ["no answer": silent]) { $1 }
        return all.sorted { $0.key < $1.key }.map { "\($0.value) x \($0.key)" }.joined(separator: ", ")
    }

    /// Waits until each client has its echo or has failed, or until the deadline.
    mutating func waitForEchoes(until end: ContinuousClock.Instant) {
        while states.contains(where: { $0 == .connecting || $0 == .waiting }) {
            let left = end - .now
            guard left > .zero, poll(&members, nfds_t(members.count), CInt(left / .milliseconds(1)) + 1) > 0 else {
                return
            }
            for index in members.indices where members[index].revents != 0 { advance(index) }
        }
    }

    private mutating func advance(_ index: Int) {
        let number = members[index].fd
        var byte: UInt8 = 1
        let count =
            states[index] == .connecting
            ? send(number, &byte, 1, CInt(MSG_NOSIGNAL)) : recv(number, &byte, 1, 0)
        let cause = count == 0 ? "closed" : SocketError.message(for: errno)
        guard count == 1 else {
            words[cause, default: 0] += 1
            return finish(index, .failed)
        }
        guard states[index] == .connecting else { return finish(index, .echoed) }
        states[index] = .waiting
        members[index].events = Int16(POLLIN)
    }

    private mutating func finish(_ index: Int, _ state: State) {
        states[index] = state
        // The descriptor stays open, so that all clients are connected at once; poll(2) ignores negative numbers.
        members[index].fd = -1
    }

    /// Closes the descriptor with the last reference.
    private final class Owner {
        private let descriptor: Descriptor
        init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
        var number: CInt { descriptor.number }
    }
}
