import Glibc
import SystemIO

/// Reads from a connection until `count` bytes have arrived or the stream ends.
func read(_ count: Int, from connection: borrowing Connection) async throws -> String {
    var bytes = connection.initialBytes
    while bytes.count < count {
        try await Poller.shared.wait(for: .readable, of: connection.descriptor.number)
        var buffer = [UInt8](repeating: 0, count: count - bytes.count)
        let got = recv(connection.descriptor.number, &buffer, buffer.count, 0)
        guard got > 0 else { break }
        bytes += buffer[..<got]
    }
    return String(decoding: bytes, as: UTF8.self)
}
