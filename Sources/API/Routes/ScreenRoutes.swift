import AccessControl
import Apps
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore

/// `/v1/endpoints/{id}/screen`: the live screen of an app.
enum ScreenRoutes {
    private static let widths = 16...4_096

    static let pictureQuery: [APIRoute.Query] = [
        .integer("width", "Width in pixels, rounded up to a multiple of 120; default: at most 1,568 on the longer side")
    ]

    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        let screen = try await answer(request) { screens, endpoint, principal in
            try await screens.description(of: endpoint, for: principal)
        }
        var document: JSONObject = ["schema": 1]
        document["tool"] = screen.tool.map(JSON.string)
        document["input"] = .array(screen.input.map(JSON.string))
        document["limits"] = .array(screen.limits.map(JSON.string))
        return .json(.object(document))
    }

    /// Returns the picture. Its entity tag is that of its bytes, so a screen without a change is sent once.
    @Sendable static func picture(_ request: APIRequest) async throws -> APIResponse {
        let width = try request.pictureWidth(in: widths)
        let file: ImageFile
        do {
            file = try await answer(request) { screens, endpoint, principal in
                try await screens.picture(of: endpoint, width: width, for: principal)
            }
        } catch let error as ImageError {
            throw Problem(.conflict, "the picture cannot be read: \(error)")
        }
        let tag = "\"\(Artifact.sha(of: file.bytes))\""
        let headers: HTTPFields = [.eTag: tag, .cacheControl: "private, no-cache"]
        let known = RequestValidator.values(of: "If-None-Match", in: request.httpRequest.head)
        if known.contains(where: { $0.contains(tag) }) {
            return .response(Response(status: .notModified, headers: headers))
        }
        return .body(ByteBuffer(bytes: file.bytes), type: file.format.mimeType, headers: headers)
    }

    @Sendable static func send(_ request: APIRequest) async throws -> APIResponse {
        let input = try await request.body(Body.self).input()
        try await request.requireApproval(of: try await request.endpoint())
        try await answer(request) { screens, endpoint, principal in
            try await screens.send(input, to: endpoint, for: principal)
        }
        return .noContent
    }

    private static func answer<Value: Sendable>(
        _ request: APIRequest,
        _ body: @escaping @Sendable (ScreenService, Endpoint, Principal) async throws -> Value
    ) async throws -> Value {
        let (endpoint, screens, principal) = (
            try await request.endpoint(), request.services.mcp.screens, request.principal
        )
        do { return try await request.whileConnected { try await body(screens, endpoint, principal) } } catch {
            guard let failure = error as? AppError else { throw error }
            throw failure.problem(at: principal.knownID(of: endpoint.id))
        }
    }

    /// The body of `POST …/screen/input`.
    struct Body: Hashable, Decodable {
        struct Swipe: Hashable, Decodable {
            let from: ScreenInput.Point
            let to: ScreenInput.Point
            let milliseconds: Int?
        }

        struct Text: Hashable, Decodable {
            let text: String
        }

        private static let milliseconds = 50...5_000
        private static let textLimit = 2_000

        let tap: ScreenInput.Point?
        let swipe: Swipe?
        let type: Text?

        /// - Throws: `Problem`.
        func input() throws(Problem) -> ScreenInput {
            switch (tap, swipe, type) {
            case (let point?, nil, nil):
                try Self.check([point])
                return .tap(point)
            case (nil, let swipe?, nil):
                try Self.check([swipe.from, swipe.to])
                let milliseconds = swipe.milliseconds ?? 300
                guard Self.milliseconds.contains(milliseconds) else {
                    throw Problem(.badRequest, "\"milliseconds\" must be from 50 to 5000, not \(milliseconds)")
                }
                return .swipe(from: swipe.from, to: swipe.to, milliseconds: milliseconds)
            case (nil, nil, let type?):
                guard (1...Self.textLimit).contains(type.text.unicodeScalars.count) else {
                    throw Problem(.badRequest, "\"text\" must have 1 to \(Self.textLimit) characters")
                }
                return .type(type.text)
            default: throw Problem(.badRequest, "the body must have exactly one of \"tap\", \"swipe\" and \"type\"")
            }
        }

        private static func check(_ points: [ScreenInput.Point]) throws(Problem) {
            let isInside = points.allSatisfy { (0...1).contains($0.x) && (0...1).contains($0.y) }
            guard isInside else { throw Problem(.badRequest, "coordinates are fractions of the picture, from 0 to 1") }
        }
    }
}
