import Model
import SystemIO
import TestSupport
import Testing

/// Each phone has its own loopback address for its apps.
extension Phones {
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

extension ConnectPlanner {
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
        } catch let failure as DialError { return failure }
    }
}
