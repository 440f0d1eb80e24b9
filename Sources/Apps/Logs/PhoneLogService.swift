package import AccessControl
package import Model
import Synchronization
import SystemIO

/// Reads the logs of phones for clients, without secrets.
///
/// The client of a grant gets only lines of the user that runs the app of an endpoint. If another app has this user, the
/// client gets none. The kernel of the phone names the user of a line and of a port.
package final class PhoneLogService: Sendable {
    /// The number of past lines that a client may ask for.
    package static let lines = 0...10_000
    package static let defaultLines = 100

    /// Records that a client reads the log of an endpoint or, without one, of a phone.
    package typealias Audit = @Sendable (EndpointID?, UDID, Principal) -> Void

    private let source: (any PhoneLogSource)?
    private let users: PhoneAppUsers
    private let secrets: @Sendable () -> [[UInt8]]
    private let audit: Audit
    private let places = LogPlaces()

    /// - Parameters:
    ///   - source: Reads the logs of Android phones; nil if the configuration forbids it, and without adb.
    ///   - users: The users of apps on phones.
    ///   - secrets: The secrets of all endpoints.
    ///   - audit: Called for each log that is opened.
    package init(
        _ source: (any PhoneLogSource)?,
        users: PhoneAppUsers,
        secrets: @escaping @Sendable () -> [[UInt8]],
        audit: @escaping Audit
    ) {
        (self.source, self.users, self.secrets, self.audit) = (source, users, secrets, audit)
    }

    /// Creates the service with the secrets and the audit log of a store.
    package convenience init(_ source: (any PhoneLogSource)?, users: PhoneAppUsers, accessStore: AccessStore) {
        let known = KnownSecrets(accessStore)
        self.init(source, users: users, secrets: { known.all }) { accessStore.auditLogRead(of: $0, on: $1, by: $2) }
    }

    /// Returns whether a list shows the log of an endpoint.
    package func hasLog(of endpoint: Endpoint, for principal: Principal) -> Bool {
        source != nil && !endpoint.isOnOtherHost && endpoint.location.udid?.platform == .android
            && endpoint.kind != .web && Self.mayRead(principal)
    }

    private static func mayRead(_ principal: Principal) -> Bool {
        if case .named = principal.tools { return false }
        return principal.may(.endpointCall)
    }

    /// Reads the newest lines of an app, and prepares to follow its log. The client may see the endpoint.
    ///
    /// - Throws: `Problem`, `DialError`, `CancellationError`.
    package func open(_ endpoint: Endpoint, lines: Int, for principal: Principal) async throws -> PhoneLog {
        guard Self.mayRead(principal) else {
            throw Problem(
                .forbidden,
                "the client may use only \(principal.tools) of \(endpoint.id), and the log is none of them",
                hint: "ask an owner for an invite without this limit: patchbay pair"
            )
        }
        guard let udid = endpoint.location.udid else {
            throw Problem(
                .badRequest,
                "\(endpoint.id) is not known to run on an Android phone that adb shows; only the logs of those are read",
                hint: "patchbay devices"
            )
        }
        let source = try source(of: udid)
        let place = try places.take(udid, for: principal.holder)
        let user = try await user(of: endpoint, on: udid, source, for: principal)
        let past = try await source.past(of: udid, user: user, lines: lines)
        audit(endpoint.id, udid, principal)
        let table = LogProcessTable(of: endpoint.app, after: past.lines)
        return PhoneLog(past, redactor: redactor, place: place) { [users] position, backlog in
            let processes = Mutex(table)
            var (user, position) = (user, position)
            while true {
                let (current, start) = (user, position)
                _ = try await withCancellation {
                    await users.waitForChange(of: endpoint.id, on: udid, from: current)
                } _: {
                    try await source.follow(udid, user: current, from: start) { events in
                        backlog.append(processes.withLock { $0.noting(events) })
                    }
                }
                try Task.checkCancellation()
                user = try await self.user(of: endpoint, on: udid, source, for: principal)
                position = PhoneLogPosition()
                backlog.append([.note("\(endpoint.app) was installed again")])
            }
        }
    }

    /// Reads the newest lines of all apps of a phone, and prepares to follow its log.
    ///
    /// - Throws: `Problem`, `DialError`, `CancellationError`.
    package func open(_ udid: UDID, lines: Int, for principal: Principal) async throws -> PhoneLog {
        guard principal.isOwner else { throw Problem(.forbidden, "only an owner may read the log of a whole phone") }
        let source = try source(of: udid)
        let place = try places.take(udid, for: principal.holder)
        let past = try await source.past(of: udid, user: nil, lines: lines)
        audit(nil, udid, principal)
        return PhoneLog(past, redactor: redactor, place: place) { position, backlog in
            try await source.follow(udid, user: nil, from: position, backlog.append)
        }
    }

    private var redactor: @Sendable () -> SecretRedactor { { [secrets] in SecretRedactor(known: secrets()) } }

    private func source(of udid: UDID) throws(Problem) -> any PhoneLogSource {
        guard udid.platform == .android else {
            throw Problem(
                .badRequest,
                "\(udid) is an iPhone, and Patchbay reads the logs of Android phones only",
                hint: "idevicesyslog -u \(udid), or Xcode's console"
            )
        }
        guard let source else {
            throw Problem(
                .conflict,
                "this broker reads no logs of phones: devices.read_logs, devices.adb or devices.enabled turns it off",
                hint: "patchbay config"
            )
        }
        return source
    }

    /// Returns the user whose lines the client may read.
    private func user(
        of endpoint: Endpoint,
        on udid: UDID,
        _ source: any PhoneLogSource,
        for principal: Principal
    ) async throws -> UInt32 {
        var user = users.user(of: endpoint.id, on: udid)
        if let port = endpoint.phonePort(on: udid) { user = try await source.user(ofPort: port, on: udid) ?? user }
        if user == nil, principal.isOwner { user = try await source.user(ofPackage: endpoint.app, on: udid) }
        guard let user else {
            throw Problem(
                .unavailable,
                endpoint.kind == .web
                    ? "the phone does not tell which app has the pages of \(endpoint.id)"
                    : "\(endpoint.id) does not run, and Patchbay has not seen it on its phone since the broker started",
                hint: endpoint.kind == .web
                    ? "patchbay log of the app's own endpoint, or of the phone" : "start the app"
            )
        }
        guard !principal.isOwner else { return user }
        guard try await source.package(ofUser: user, on: udid) == endpoint.app else {
            throw Problem(
                .forbidden,
                "the phone does not confirm that \(endpoint.app) alone writes the lines of \(endpoint.id): "
                    + "it has another package, or shares its user with other apps",
                hint: "an owner can read them: patchbay log \(endpoint.id)"
            )
        }
        return user
    }
}

extension Endpoint {
    /// The port of the server on a phone; nil if it has no TCP port now.
    fileprivate func phonePort(on udid: UDID) -> UInt16? {
        routes.lazy.compactMap { route in
            if case .usb(let usb) = route.route, usb.udid == udid { usb.socket.port } else { nil }
        }.first
    }
}
