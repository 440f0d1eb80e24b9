import Glibc

extension SocketAddress {
    /// True if a connection to this address would reach a listener of this process.
    ///
    /// The kernel is asked each time. The result therefore covers the listeners of every module, those of NIO, and the
    /// ones that systemd passed. The port counts for all addresses of this machine. True also if `/proc` cannot be read.
    package var isOwnListener: Bool {
        guard let port else { return false }
        return isOwn && Self.isListening(on: port)
    }

    /// True for an address of this machine, including all of 127.0.0.0/8.
    private var isOwn: Bool {
        let address = unmapped.with(port: 0)
        guard let socket = try? address.makeSocket() else { return true }
        // bind(2) fails with EADDRNOTAVAIL for the address of another machine.
        return (try? address.withRaw { bind(socket.number, $0, $1) }) == 0 || errno != EADDRNOTAVAIL
    }

    /// Returns true if a descriptor of this process listens on a TCP port.
    private static func isListening(on port: UInt16) -> Bool {
        guard let folder = opendir("/proc/self/fd") else { return true }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let number = withUnsafeBytes(of: &entry.pointee.d_name) { name in
                CInt(String(decoding: name.prefix { $0 != 0 }, as: UTF8.self))
            }
            if let number, SocketOption.isListening(number), local(of: number)?.port == port { return true }
        }
        return false
    }
}
