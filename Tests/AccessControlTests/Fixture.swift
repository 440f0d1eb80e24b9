import FoundationEssentials
import Glibc
import Model
import Samples
import Synchronization
import TestSupport

@testable import AccessControl

/// A wall clock and a boot clock that tests control.
final class TestClock: Sendable {
    private let reading: Mutex<ClockReading>

    init(wall: Int64 = 1_800_000_000_000, boot: Int64 = 5_000_000) {
        reading = Mutex(ClockReading(wall: wall, boot: boot))
    }

    var read: @Sendable () -> ClockReading { { self.reading.withLock { $0 } } }

    /// Advances both clocks.
    func pass(_ seconds: Double) {
        reading.withLock {
            $0.wall += Int64(seconds * 1_000)
            $0.boot += Int64(seconds * 1_000)
        }
    }

    /// Sets the wall clock only.
    func setWall(by seconds: Double) { reading.withLock { $0.wall += Int64(seconds * 1_000) } }

    /// Simulates a reboot: the boot clock restarts, and the wall clock continues.
    func reboot() { reading.withLock { $0.boot = 1_000 } }
}

enum Fixture {
    static let owner = AuditActor.process(uid: 1_000, pid: 42, executable: SanitizedText("/usr/bin/patchbay"))
    static let socket = RequestSource.unix(uid: 1_000)
    static let loopback = RequestSource.tcp(address: "127.0.0.1")
    static let reader = Permissions([.registryRead, .endpointCall], on: .all)

    /// Returns an approved endpoint; `udid` is its phone.
    static func endpoint(_ app: String, at location: String = "phone", udid: UDID? = nil) -> Endpoint {
        .sample(
            EndpointID(app: SanitizedText(app), location: location),
            app: app,
            name: app,
            location: Endpoint.Location(udid: udid),
            firstSeenAt: .distantPast
        )
    }

    /// Returns the principal with a grant on loopback.
    static func grantee(_ grant: String) -> Principal { Principal(.anonymous, source: loopback, actor: .grant(grant)) }

    static func store(
        in scratch: ScratchFolder,
        clock: TestClock = TestClock(),
        launches: ObservedLaunches? = nil,
        auditSegment: Int = 8 << 20,
        failurePoint: @escaping @Sendable (FailurePoint) -> Void = { _ in }
    ) throws -> AccessStore {
        try AccessStore(
            in: scratch.path,
            logger: .quiet,
            launches: launches,
            auditSegment: auditSegment,
            reading: clock.read,
            failurePoint: failurePoint
        )
    }

    /// Returns a redemption by a client with its own key; the key depends only on the name.
    static func redemption(of invite: Token, as name: String) -> RedemptionSpec {
        RedemptionSpec(
            token: invite.reveal(),
            client: name + String(repeating: "-", count: 16),
            name: SanitizedText(name)
        )
    }

    /// Returns a well-formed token with the same ID and another secret.
    static func forged(_ token: Token) -> Token { Token(random: token.kind).withID(token.id) }

    static func audit(in scratch: ScratchFolder) throws -> [AuditEntry] {
        try Data(contentsOf: URL(filePath: scratch.file("audit.jsonl"))).split(separator: UInt8(ascii: "\n")).map {
            try JSONCoding.decoder().decode(AuditEntry.self, from: $0)
        }
    }
}

extension Token {
    /// Returns the same secret under another ID.
    func withID(_ id: String) -> Token { Token(kind, id: id, secret: String(reveal().split(separator: "_")[2])) }
}

// The requests of an owner at the unix socket, and of clients on loopback.

extension InviteService {
    func create(_ spec: InviteSpec = InviteSpec(Fixture.reader)) async throws -> (Invite, Token) {
        try await create(spec, by: Fixture.owner, from: Fixture.socket)
    }

    /// Redeems an invite as the client with this name.
    func redeem(
        _ invite: Token,
        as name: String,
        from source: RequestSource = Fixture.loopback
    ) async throws -> (Grant, Token) { try await redeem(Fixture.redemption(of: invite, as: name), from: source) }
}

extension GrantService {
    func create(_ spec: SocketGrantSpec) async throws -> Grant {
        try await create(spec, by: Fixture.owner, from: Fixture.socket)
    }

    @discardableResult func revoke(_ id: String) async throws -> [String] { try await revoke(.one(id)) }

    @discardableResult func revoke(_ what: RevocationTarget) async throws -> [String] {
        try await revoke(what, by: Fixture.owner, from: Fixture.socket)
    }

    func authenticate(_ token: Token) async throws -> Grant { try await authenticate(token, from: Fixture.loopback) }
}

extension EndpointApprovalService {
    @discardableResult func approve(
        _ endpoint: Endpoint,
        at address: String? = nil,
        port: UInt16? = nil
    ) async throws -> Approval {
        try await approve(endpoint, at: address, port: port, by: Fixture.owner, from: Fixture.socket)
    }

    func deny(_ endpoint: Endpoint, at address: String? = nil) async throws {
        try await deny(endpoint, at: address, by: Fixture.owner, from: Fixture.socket)
    }
}

extension EndpointSecretService {
    func set(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        over route: Route? = nil,
        on port: UInt16? = nil,
        isForUnseen: Bool = false
    ) async throws {
        try await set(
            secret,
            of: endpoint,
            over: route,
            on: port,
            isForUnseen: isForUnseen,
            by: Fixture.owner,
            from: Fixture.socket
        )
    }
}

extension AccessRequestService {
    @discardableResult func approve(_ code: String) async throws -> AccessRequest {
        try await approve(code, by: Fixture.owner, from: Fixture.socket)
    }

    @discardableResult func deny(_ code: String) async throws -> AccessRequest {
        try await deny(code, by: Fixture.owner, from: Fixture.socket)
    }
}

extension GrantRecord {
    /// A grant that ends in a minute, or after some seconds.
    static func sample(
        _ id: String,
        digest: Data = Data(),
        binding: GrantBinding = .bearer,
        createdAt: MonotonicTime? = nil,
        at now: MonotonicTime,
        for seconds: Int = 60
    ) -> GrantRecord {
        GrantRecord(
            id: id,
            digest: digest,
            name: SanitizedText("agent"),
            permissions: Fixture.reader,
            binding: binding,
            parent: nil,
            invite: nil,
            client: Data(),
            createdAt: createdAt ?? now,
            expiresAt: now + seconds,
            lastUsedAt: now,
            idleSeconds: 600
        )
    }
}

extension AccessStore {
    /// Creates an invite under a grant and redeems it.
    func child(of grant: Grant, _ permissions: Permissions, to name: String = "child") async throws -> (Grant, Token) {
        let (_, invite) = try await invites.create(
            InviteSpec(permissions),
            by: .grant(grant.id),
            from: Fixture.loopback
        )
        return try await invites.redeem(invite, as: name)
    }

    /// Creates an invite and redeems it.
    func grant(
        _ permissions: Permissions = Fixture.reader,
        lifetime: Int? = nil,
        idle: Int = 7_200,
        to name: String = "agent"
    ) async throws -> (Grant, Token) {
        let spec = InviteSpec(permissions, grantLifetimeSeconds: lifetime, grantIdleSeconds: idle)
        let (_, invite) = try await invites.create(spec)
        return try await invites.redeem(invite, as: name)
    }
}

/// Size of long tests: small by default, full with `PATCHBAY_SOAK=1` (`make soak`).
enum Scale {
    static func pick(short: Int, soak: Int) -> Int {
        ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" ? soak : short
    }
}
