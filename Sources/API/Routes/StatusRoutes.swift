import HTTPTypes
import Hummingbird
import Model
import NIOCore
import Registry

/// `/v1/status`, `/health`, `/openapi.json`.
enum StatusRoutes {
    private struct Health: Encodable {
        let status: String
        let version = Version.text
        /// A sentence without paths: anybody may ask.
        let detail: String?
    }

    @Sendable static func show(_ call: APIRequest) async throws -> Response {
        let status = await call.broker.status()
        return try call.answer(call.visitor.isOwner ? status : await call.own(of: status))
    }

    @Sendable static func health(_ call: APIRequest) async throws -> Response {
        guard await !call.broker.storageProblems().isEmpty else {
            return try call.answer(Health(status: "ok", detail: nil))
        }
        let detail = "the state folder cannot be written, so changes are refused; an owner's `patchbay status` says why"
        return try call.answer(Health(status: "degraded", detail: detail))
    }

    @Sendable static func openAPI(_ call: APIRequest) async throws -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: OpenAPIDocument.text))
        )
    }
}

extension APIRequest {
    /// What the holder of a grant is told: what is its own, and nothing by which to count that of others.
    fileprivate func own(of status: BrokerStatus) async -> BrokerStatus {
        var status = status
        status.pid = nil
        status.findings = nil
        status.storage = nil
        let endpoints = seen(await broker.registry.endpoints)
        status.endpoints = Dictionary(grouping: endpoints, by: \.state.rawValue).mapValues(\.count)
        status.tunnels = await tunnels().count
        if !visitor.seesAll {
            status.devices = 0
            status.sources = []
        }
        return status
    }
}
