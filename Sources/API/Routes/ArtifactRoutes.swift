import HTTPTypes
import Hummingbird
import MCP
import Model
import NIOCore

/// `/v1/artifacts`: what was too heavy for a tool's result, as it is. Whoever's call it came from may have it, and owners,
/// as with `resources/read`.
enum ArtifactRoutes {
    @Sendable static func show(_ call: APIRequest) async throws -> Response {
        let sha = try call.parameter("sha")
        guard let artifact = await call.broker.agents.artifacts.artifact(sha, for: call.visitor.agent) else {
            throw Problem(
                .notFound,
                "nothing is kept for you as \"\(SanitizedText(sha, limit: 64))\"; what a result links to is kept for an hour",
                next: "call the tool again"
            )
        }
        return Response(
            status: .ok,
            // The type is the app's word, which makes no page of ours out of it.
            headers: [.contentType: artifact.mimeType, .contentDisposition: "attachment"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: artifact.bytes))
        )
    }
}
