import CLinux
import Glibc
import SystemIO

/// Finds the socket addresses of a usbmuxd that listens on TCP.
///
/// getaddrinfo(3) may ask the network and blocks meanwhile, so it has a thread of its own.
enum HostResolver {
    private static let thread = BlockingCallThread(named: "patchbay-lookup")

    /// In the order of preference that getaddrinfo(3) gives; never empty.
    static func addresses(of host: String, port: UInt16) async throws -> [SocketAddress] {
        if let address = SocketAddress(numeric: host, port: port) { return [address] }
        return try await thread.call {
            var hints = addrinfo()
            hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            let status = getaddrinfo(host, String(port), &hints, &list)
            guard status == 0 else {
                throw UsbmuxError.failed(
                    call: "the look-up of \(host)",
                    words: String(cString: gai_strerror(status))
                )
            }
            defer { freeaddrinfo(list) }
            let found = sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
                entry.flatMap { address(in: $0.pointee) }
            }
            guard !found.isEmpty else {
                throw UsbmuxError.failed(call: "the look-up of \(host)", words: "no IPv4 or IPv6 address")
            }
            return found
        }
    }

    private static func address(in entry: addrinfo) -> SocketAddress? {
        var storage = sockaddr_storage()
        guard let raw = entry.ai_addr, entry.ai_addrlen <= MemoryLayout<sockaddr_storage>.size else { return nil }
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: Int(entry.ai_addrlen)))
        }
        return SocketAddress(storage)
    }
}
