import Glibc
import SystemIO

/// Reads from a stream until so many bytes are there, or its end.
func read(_ count: Int, from carrier: borrowing Connection) async throws -> String {
    var bytes = carrier.early
    while bytes.count < count {
        try await Poller.shared.wait(for: .readable, of: carrier.descriptor.number)
        var buffer = [UInt8](repeating: 0, count: count - bytes.count)
        let got = recv(carrier.descriptor.number, &buffer, buffer.count, 0)
        guard got > 0 else { break }
        bytes += buffer[..<got]
    }
    return String(decoding: bytes, as: UTF8.self)
}
