import FoundationEssentials
package import Model
package import NIOHTTP1

/// A client of a broker's HTTP API: `PatchbayClient`, or in a team the client of another host's broker.
package protocol APIClient: Sendable {
    /// Sends a request, and waits for the complete response.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - extraTimeout: The time for the response in addition to that of other requests.
    ///   - limit: The maximum size of the body in bytes.
    /// - Returns: The headers and the body.
    /// - Throws: `ClientError`, `CancellationError`; in a team also the errors of the other host.
    func send(
        _ request: OutgoingRequest,
        extraTimeout: Duration,
        limit: Int
    ) async throws -> (headers: HTTPHeaders, bytes: [UInt8])
}

extension APIClient {
    package var leases: LeaseClient { LeaseClient(client: self) }
    package var tools: ToolClient { ToolClient(client: self) }

    /// Probes an endpoint now. An unreachable endpoint takes until the broker's probe timeout.
    package func probe(_ id: EndpointID) async throws -> Endpoint {
        let request = OutgoingRequest(method: .POST, path: ["endpoints", id.text, "probe"])
        return try await response(to: request, extraTimeout: .seconds(20))
    }

    /// Asks the authority of the team for a new certificate of the host whose certificate this connection has.
    package func renew(_ spec: TeamRenewalSpec) async throws -> TeamRenewal {
        let body = try body(spec)
        return try await response(to: OutgoingRequest(method: .POST, path: ["team", "members", "renewal"], body: body))
    }

    /// Sends a request and decodes its response.
    func response<Response: Decodable>(
        to request: OutgoingRequest,
        as type: Response.Type = Response.self,
        extraTimeout: Duration = .zero
    ) async throws -> Response {
        let bytes = try await bytes(of: request, extraTimeout: extraTimeout)
        return try decode(type, from: bytes, what: "the answer to \(request.name)")
    }

    /// Requests a list and returns its items.
    func items<Item: ListItem>(at path: String) async throws -> [Item] {
        try await response(to: OutgoingRequest(method: .GET, path: [path]), as: ListResponse<Item>.self).items
    }

    /// Sends a request that has no response body.
    func perform(_ request: OutgoingRequest, extraTimeout: Duration = .zero) async throws {
        _ = try await bytes(of: request, extraTimeout: extraTimeout)
    }

    /// Sends a request and returns the raw response body.
    func bytes(of request: OutgoingRequest, extraTimeout: Duration = .zero) async throws -> [UInt8] {
        try await send(request, extraTimeout: extraTimeout, limit: HTTPConnection.bodyLimit).bytes
    }

    func body(_ value: some Encodable) throws -> [UInt8] { Array(try JSONCoding.encoder().encode(value)) }

    func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>, what: String) throws -> Value {
        do {
            return try JSONCoding.decoder().decode(type, from: Data(bytes))
        } catch {
            throw ClientError.invalidResponse(what: what, detail: DecodingError.position(of: error))
        }
    }
}

extension DecodingError {
    /// Returns the position of an error in the document. The full text of a DecodingError is too long.
    fileprivate static func position(of error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            "\(path(context.codingPath)) has no \"\(key.stringValue)\""
        case DecodingError.dataCorrupted(let context), DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context):
            "\(path(context.codingPath)): \(context.debugDescription)"
        default: "\(error)"
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        keys.isEmpty
            ? "the document" : keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}
