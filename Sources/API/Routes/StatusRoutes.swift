import HTTPTypes
import Hummingbird
import Model
import NIOCore

/// `/v1/status`, `/health`, `/openapi.json`.
enum StatusRoutes {
    private struct Health: Encodable {
        let status = "ok"
        let version = Version.text
    }

    @Sendable static func show(_ call: Call) async throws -> Response {
        try call.answer(await call.broker.status())
    }

    @Sendable static func health(_ call: Call) async throws -> Response {
        try call.answer(Health())
    }

    @Sendable static func openAPI(_ call: Call) async throws -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: OpenAPIDocument.text))
        )
    }
}
