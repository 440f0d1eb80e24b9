import Glibc
import Logging
import Model
import Synchronization
import SystemIO

/// Finds out which adverts with a loopback address come from this host.
///
/// Flutter's tool announces the loopback addresses of its host on every other interface. mDNS does not say who sent such
/// an advert, so a responder of this host has to confirm it.
final class LocalServiceVerifier: Sendable {
    /// The time that a responder has to answer, and the number of questions.
    private static let timeout = Duration.milliseconds(500)
    private static let attempts = 2
    /// The number of adverts that may wait. A flood of forged adverts drops the oldest.
    private static let queueLimit = 64

    private let confirmed = Mutex<Set<LocalService>>([])
    private let requests: AsyncStream<LocalService>
    private let continuation: AsyncStream<LocalService>.Continuation
    private let logger: Logger

    init(logger: Logger) {
        self.logger = logger
        (requests, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.queueLimit))
    }

    /// Adds an advert to check.
    func add(_ service: LocalService) { continuation.yield(service) }

    /// Removes and returns the confirmed adverts.
    func drain() -> Set<LocalService> {
        confirmed.withLock { confirmed in
            defer { confirmed = [] }
            return confirmed
        }
    }

    /// Checks adverts one after the other until the task is cancelled. Calls `onConfirm` after each confirmed one.
    func run(onConfirm: @Sendable () -> Void) async {
        for await service in requests {
            var attempts = 0
            var isConfirmed = false
            while !isConfirmed, attempts < Self.attempts, !Task.isCancelled {
                attempts += 1
                isConfirmed = (try? await Self.isConfirmed(service)) ?? false
            }
            logger.debug(
                "asked this host for the service of an advert with a loopback address",
                metadata: ["name": "\(SanitizedText(service.key.instance))", "confirmed": "\(isConfirmed)"]
            )
            guard isConfirmed else { continue }
            confirmed.withLock { _ = $0.insert(service) }
            onConfirm()
        }
    }

    /// Asks the responders of this host. Returns false without an answer in time.
    ///
    /// - Throws: `CancellationError`; `SocketError`.
    private static func isConfirmed(_ service: LocalService) async throws -> Bool {
        guard let socket = multicastSocket(on: service.key.interface) else { return false }
        let query = LocalServiceQuery(for: service)
        var group = sockaddr_in()
        group.sin_family = sa_family_t(AF_INET)
        group.sin_port = UInt16(5_353).bigEndian
        group.sin_addr.s_addr = UInt32(0xE000_00FB).bigEndian
        let (packet, size) = (query.packet, socklen_t(MemoryLayout<sockaddr_in>.size))
        let sent = withUnsafePointer(to: &group) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(socket.number, packet, packet.count, 0, $0, size)
            }
        }
        guard sent == packet.count else { return false }
        let deadline = ContinuousClock.now + timeout
        while try await Poller.shared.wait(for: .readable, of: socket.number, until: deadline) {
            var reply = [UInt8](repeating: 0, count: 9_000)
            var storage = sockaddr_storage()
            var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let count = withUnsafeMutablePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(socket.number, &reply, reply.count, 0, $0, &size)
                }
            }
            guard count > 0, let sender = SocketAddress(storage), isOwn(sender) else { continue }
            if query.isAnswered(by: Array(reply.prefix(count))) { return true }
        }
        return false
    }

    /// Returns true for an address of this host. The kernel drops packets from a link with such a sender.
    private static func isOwn(_ sender: SocketAddress) -> Bool {
        guard case .ipv4(let number, _) = sender,
            let address = IPAddress(bytes: withUnsafeBytes(of: number.bigEndian) { Array($0) })
        else { return false }
        return address.isLoopback || LocalInterfaces.current().isOwn(address)
    }

    /// Returns a UDP socket that sends to this host's own members of multicast groups on an interface. Nil on failure.
    private static func multicastSocket(on interface: CInt) -> Descriptor? {
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let number = socket(AF_INET, type, 0)
        guard number >= 0 else { return nil }
        let descriptor = Descriptor(owning: number)
        var link = ip_mreqn()
        link.imr_ifindex = interface
        var hops: CInt = 0
        let size = socklen_t(MemoryLayout<CInt>.size)
        guard
            setsockopt(number, CInt(IPPROTO_IP), IP_MULTICAST_IF, &link, socklen_t(MemoryLayout<ip_mreqn>.size)) == 0,
            setsockopt(number, CInt(IPPROTO_IP), IP_MULTICAST_TTL, &hops, size) == 0
        else { return nil }
        return descriptor
    }
}
