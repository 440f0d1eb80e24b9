import Glibc

/// A unix datagram socket that sends to one address.
package final class DatagramSocket: Sendable {
    private let descriptor: Descriptor
    private let address: sockaddr_un
    private let addressLength: socklen_t

    /// Creates the socket; the receiver may start later. Nil if the address is empty or too long, or if no descriptor is
    /// free.
    ///
    /// - Parameter address: A path, or `@` and an abstract name.
    package init?(to address: String) {
        var bytes = Array(address.utf8)
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: target.sun_path) else { return nil }
        // The name of an abstract socket begins with a zero byte (unix(7)).
        if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        self.descriptor = Descriptor(owning: descriptor)
        self.address = target
        // An abstract name has every byte of the length. A path ends at its zero byte.
        addressLength = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    }

    /// Sends one datagram.
    ///
    /// - Parameters:
    ///   - bytes: The content.
    ///   - waits: If true, waits for a receiver whose queue is full.
    /// - Returns: False if the datagram was not accepted, for example because the receiver restarts.
    @discardableResult
    package func send(_ bytes: [UInt8], waits: Bool) -> Bool {
        let flags = CInt(MSG_NOSIGNAL) | (waits ? 0 : CInt(MSG_DONTWAIT))
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor.number, bytes, bytes.count, flags, $0, addressLength) == bytes.count
            }
        }
    }
}
