import Glibc
import Logging
import Model
import Synchronization
import SystemIO

/// Finds out which adverts with a loopback address come from this host.
///
/// Flutter's tool announces the loopback addresses of its machine on every other interface. mDNS does not say who sent such
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

    /// Asks the responders of this host over the IP version of the advert. Returns false without an answer in time.
    ///
    /// - Throws: `CancellationError`; `SocketError`.
    private static func isConfirmed(_ service: LocalService) async throws -> Bool {
        let isIPv4 = service.key.transport == 0
        let interface = service.key.interface
        guard let socket = isIPv4 ? ipv4Socket(on: interface) : ipv6Socket(on: interface),
            let group = SocketAddress(
                numeric: isIPv4 ? "224.0.0.251" : "ff02::fb",
                port: 5_353,
                scope: UInt32(interface)
            )
        else { return false }
        let query = LocalServiceQuery(for: service)
        let packet = query.packet
        let sent = try group.withRaw { sendto(socket.number, packet, packet.count, 0, $0, $1) }
        guard sent == packet.count else { return false }
        let deadline = MonotonicInstant.now + timeout
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
        let bytes: [UInt8]
        switch sender {
        case .ipv4(let number, _): bytes = withUnsafeBytes(of: number.bigEndian) { Array($0) }
        case .ipv6(let number, _, _): bytes = withUnsafeBytes(of: number.bigEndian) { Array($0) }
        case .unix: return false
        }
        guard let address = IPAddress(bytes: bytes) else { return false }
        return address.isLoopback || LocalInterfaces.current().isOwn(address)
    }

    /// Returns a UDP socket that sends to this host's own members of multicast groups on an interface. Nil on failure.
    private static func ipv4Socket(on interface: CInt) -> Descriptor? {
        guard let socket = udpSocket(AF_INET) else { return nil }
        var link = ip_mreqn()
        link.imr_ifindex = interface
        guard set(IPPROTO_IP, IP_MULTICAST_IF, to: link, on: socket.number),
            set(IPPROTO_IP, IP_MULTICAST_TTL, to: CInt(0), on: socket.number)
        else { return nil }
        return socket
    }

    /// The same for IPv6, whose TTL is the hop limit.
    private static func ipv6Socket(on interface: CInt) -> Descriptor? {
        guard let socket = udpSocket(AF_INET6), set(IPPROTO_IPV6, IPV6_MULTICAST_IF, to: interface, on: socket.number),
            set(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, to: CInt(0), on: socket.number)
        else { return nil }
        return socket
    }

    private static func udpSocket(_ family: CInt) -> Descriptor? {
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let number = socket(family, type, 0)
        return number >= 0 ? Descriptor(owning: number) : nil
    }

    private static func set<Value: BitwiseCopyable>(
        _ level: Int,
        _ option: CInt,
        to value: Value,
        on number: CInt
    ) -> Bool {
        withUnsafeBytes(of: value) {
            setsockopt(number, CInt(level), option, $0.baseAddress, socklen_t($0.count)) == 0
        }
    }
}
