import CLinux
import Glibc

/// Blocking writes to a socket.
package enum Stream {
    /// - Returns: False if the other side has closed.
    package static func send(_ bytes: ArraySlice<UInt8>, to socket: CInt) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
