import Glibc
import Model
import TestSupport
import SystemIO
import Testing

/// Two phones, each with its own loopback address for its apps.
enum Phones {
    static let one = "00008030-001A2B3C4D5E6F70"
    static let two = "0123456789abcdef0123456789abcdef01234567"

    static func options(of udid: String) -> PhoneOptions {
        var options = PhoneOptions()
        options.address = address(of: udid)
        return options
    }

    static func address(of udid: String) -> String { udid == one ? "127.0.0.1" : "127.0.0.2" }

    static func route(_ udid: String, _ port: UInt16) throws -> Route {
        .usb(USBRoute(udid: try #require(UDID(udid)), port: port))
    }
}

extension Connection {
    /// Sends all bytes.
    func send(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Glibc.send(descriptor.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if sent >= 0 {
                rest = rest.dropFirst(sent)
            } else if errno == EAGAIN {
                try await Poller.shared.wait(for: .writable, of: descriptor.number)
            } else {
                throw TestSupportError(call: "send")
            }
        }
    }

    /// Receives `count` bytes, or fewer at the end of the stream.
    func receive(_ count: Int) async throws -> [UInt8] {
        var bytes = initialBytes
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: min(65536, count - bytes.count))
            let got = recv(descriptor.number, &buffer, buffer.count, 0)
            if got < 0, errno == EAGAIN {
                try await Poller.shared.wait(for: .readable, of: descriptor.number)
                continue
            }
            guard got > 0 else { break }
            bytes += buffer[..<got]
        }
        return bytes
    }
}

extension Dialer {
    /// Sends a few bytes to an echo server on the route and checks the echo.
    func echoes(_ route: Route, _ bytes: [UInt8] = [1, 2, 3]) async throws -> Bool {
        let carrier = try await dial(route)
        try await carrier.send(bytes)
        return try await carrier.receive(bytes.count) == bytes
    }

    /// Returns the error of a connect, or nil if it succeeds.
    func failure(of route: Route) async throws -> DialError? {
        do {
            _ = try await dial(route)
            return nil
        } catch let failure as DialError {
            return failure
        }
    }
}
