import CLinux
import Glibc
import SystemIO

/// Free ports for programs that cannot choose one.
package enum FreePorts {
    /// Returns different free ports below the ephemeral range (ip(7), ip_local_port_range), so that no client gets one
    /// by chance.
    package static func take(_ count: Int = 1) throws -> [UInt16] {
        var ports: Set<UInt16> = []
        for _ in 0..<1000 where ports.count < count {
            let port = UInt16.random(in: 16_000..<32_000)
            if isFree(port) { ports.insert(port) }
        }
        guard ports.count == count else { throw TestSupportError("no \(count) free ports were found") }
        return Array(ports)
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return false }
        defer { close(number) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        return withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
