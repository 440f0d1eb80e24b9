import Glibc
import SystemIO
import Testing

/// A datagram socket in place of one of systemd's.
final class DatagramListener: Sendable {
    private let number: CInt

    init(_ path: String) throws {
        number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0)
    }

    deinit { close(number) }

    /// Returns the next datagram, without waiting; nil if there is none.
    func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : Array(buffer.prefix(count))
    }
}
