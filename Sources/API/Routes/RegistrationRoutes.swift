import Glibc
import HummingbirdCore
import Model
import NIOCore
import SystemIO

/// `/v1/registrations`.
enum RegistrationRoutes {
    /// Registers an app at the address of its request.
    @Sendable static func register(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(RegistrationSpec.self)
        let registration = try await request.services.registrations.register(
            spec,
            by: request.principal,
            scope: request.linkLocalScope
        )
        return try .created(registration)
    }

    /// Keeps a registration. The request has no body.
    @Sendable static func heartbeat(_ request: APIRequest) async throws -> APIResponse {
        try await request.services.registrations.heartbeat(
            try request.parameter("id"),
            by: request.principal,
            scope: request.linkLocalScope
        )
        return .noContent
    }

    @Sendable static func end(_ request: APIRequest) async throws -> APIResponse {
        try await request.services.registrations.end(try request.parameter("id"), by: request.principal)
        return .noContent
    }
}

extension APIRequest {
    /// The interface of a link-local client. Nil for every other client.
    fileprivate var linkLocalScope: (name: String, index: UInt32)? {
        var storage = sockaddr_storage()
        channel.remoteAddress?.withSockAddr { address, size in
            withUnsafeMutableBytes(of: &storage) {
                $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: min(size, $0.count)))
            }
        }
        guard case .ipv6(_, _, let index) = SystemIO.SocketAddress(storage), index != 0 else { return nil }
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &name) != nil else { return nil }
        return (String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self), index)
    }
}
