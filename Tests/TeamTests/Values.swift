import FoundationEssentials
import Logging
import Model
import Samples
import ServiceLifecycle
import TestSupport

@testable import AccessControl
@testable import Team

/// Values for tests.
enum Values {
    static let team = SanitizedText("lab")
    static let date = Date(timeIntervalSince1970: 1_700_000_000)
    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    static func host(_ name: String) throws -> HostName {
        guard let host = HostName(name) else { throw TestSupportError("\(name) is no host name") }
        return host
    }

    static func id(_ text: String) throws -> EndpointID {
        guard let id = EndpointID(text) else { throw TestSupportError("\(text) is no endpoint ID") }
        return id
    }

    static func udid(_ number: Int) throws -> UDID {
        let digits = String(number)
        let text = String(repeating: "0", count: 40 - digits.count) + digits
        guard let udid = UDID(text) else { throw TestSupportError("\(text) is no UDID") }
        return udid
    }

    static func endpoint(_ id: String, state: Endpoint.State = .online, seen: TimeInterval = 0) throws -> Endpoint {
        Endpoint(
            id: try Self.id(id),
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            name: SanitizedText("Shop"),
            location: Endpoint.Location(machine: SanitizedText("iphone.local")),
            state: state,
            approval: .approved,
            routes: [EndpointRoute(.network(NetworkRoute(address: "192.168.1.20", port: 8080)))],
            sources: [.bonjour],
            firstSeenAt: date,
            lastSeenAt: date.addingTimeInterval(seen)
        )
    }

    static func device(_ number: Int, _ transport: Device.Transport = .usb) throws -> Device {
        Device(udid: try udid(number), transport: transport, attachedAt: date)
    }

    /// Each of ten hosts has another key by default: the last byte of its name.
    static func member(_ name: String, key: UInt8? = nil) throws -> TeamMember {
        let byte = key ?? name.utf8.last ?? 0
        guard let pin = KeyPin(digest: Array(repeating: byte, count: KeyPin.byteCount)) else {
            throw TestSupportError("no pin")
        }
        return TeamMember(name: try host(name), key: pin, addedAt: date)
    }

    static func teamHost(_ name: String, version: String = "1") throws -> TeamHost {
        TeamHost(name: try host(name), version: version, addresses: ["10.0.0.1:7284"], since: date, generation: 0)
    }

    static func claim(_ host: String, of endpoint: String, device: UDID? = nil) throws -> TeamClaim {
        TeamClaim(
            host: try Self.host(host),
            endpoint: try id(endpoint),
            device: device,
            holder: SanitizedText("user 1000"),
            note: nil,
            createdAt: date
        )
    }
}

extension Values {
    /// The claim of a lease of this host.
    static func leaseClaim(on target: LeaseTarget, of endpoint: String = "shop", note: SanitizedText? = nil) throws
        -> LeaseClaim
    {
        LeaseClaim(
            target: target,
            lease: "l1",
            endpoint: try id(endpoint),
            device: target.device,
            holder: LeaseHolder(key: "uid:1000", name: SanitizedText("user 1000"), isAgent: false),
            seconds: 60,
            note: note
        )
    }
}

/// Runs services during the body, and stops them gracefully.
func withRunning<Value: Sendable>(
    _ services: [any Service],
    _ body: @Sendable () async throws -> Value
) async throws -> Value {
    let group = ServiceGroup(configuration: ServiceGroupConfiguration(services: services, logger: Values.logger))
    return try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await group.run() }
        let result: Result<Value, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
        return try result.get()
    }
}
