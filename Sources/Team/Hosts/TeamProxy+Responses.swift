import Client
import FoundationEssentials
package import Model
import NIOCore

/// The responses of other brokers. The broker of a host that was taken over can send anything.
extension TeamProxy {
    /// The maximum size in bytes of a response that is read completely.
    private static let bodyLimit = 64 << 20
    /// The maximum length in bytes of a text of another broker. Those of Patchbay are shorter.
    private static let textLimit = 1_000
    private static let versionHint = "install the same version of Patchbay on all hosts of the team"

    /// Reads a complete response.
    ///
    /// - Throws: `HostError`, `CancellationError`; `Problem` of the other broker, with the name of its host.
    package static func bytes(of response: any HostResponse, from host: HostName) async throws -> [UInt8] {
        let bytes = try await body(of: response, from: host)
        guard isSuccess(response) else { throw problem(bytes, response.status, of: host) }
        return bytes
    }

    private static func isSuccess(_ response: any HostResponse) -> Bool { (200..<300).contains(response.status) }

    private static func body(of response: any HostResponse, from host: HostName) async throws -> [UInt8] {
        defer { response.close() }
        var bytes: [UInt8] = []
        while let part = try await response.next() {
            bytes += part.readableBytesView
            guard bytes.count <= bodyLimit else {
                throw Problem(.tooLarge, "the response of the host \(host) has more than \(bodyLimit) bytes")
            }
        }
        return bytes
    }

    /// Reads a document of another broker.
    ///
    /// - Throws: `Problem` without any text of a document that cannot be decoded; the errors of `read`.
    static func document<Value>(from host: HostName, _ read: () async throws -> Value) async throws -> Value {
        do { return try await read() } catch is ClientError {
            throw Problem(.unavailable, "the host \(host) sends an invalid document", hint: versionHint)
        }
    }

    /// Closes the response and throws a problem unless its status can be passed on. A status of four digits is no status
    /// of HTTP, and one below 200 begins no response (RFC 9110, section 15).
    package static func requireStatus(of response: any HostResponse, from host: HostName) throws(Problem) {
        guard !(200...599).contains(response.status) else { return }
        response.close()
        throw Problem(
            .unavailable,
            "the host \(host) answers with the invalid status \(response.status)",
            hint: versionHint
        )
    }

    /// Returns the text of another broker, without characters that have an effect in a terminal or a prompt.
    package static func sanitized(_ text: String) -> String { SanitizedText(text, limit: textLimit).text }

    /// Returns the problem of another broker, with the name of its host.
    private static func problem(_ body: [UInt8], _ status: Int, of host: HostName) -> Problem {
        guard let problem = try? JSONCoding.decoder().decode(Problem.self, from: Data(body)) else {
            // MCP clients expect this status from a server without a stream of its own.
            let code = status == Problem.Code.methodNotAllowed.status ? Problem.Code.methodNotAllowed : .unavailable
            return Problem(code, "the host \(host) answers with the status \(status)")
        }
        // The other broker names the endpoint with its host, so that the client waits for the lease at its own broker.
        let place = problem.code == .leased ? "" : "on \(host): "
        return Problem(
            problem.code,
            "on the host \(host): \(sanitized(problem.detail))",
            hint: problem.hint.map { place + sanitized($0) },
            reason: problem.reason
        )
    }

    /// Returns an error of an MCP server of another host, with the name of the host in its message. Returns nil for a
    /// response that is no error, and reads no part of it.
    ///
    /// - Throws: `Problem` for every other error, with the name of the host.
    package static func error(in response: any HostResponse, from host: HostName, isMCP: Bool) async throws -> JSON? {
        if isSuccess(response) { return nil }
        let bytes = try await body(of: response, from: host)
        let document = isMCP ? try? JSON(parsing: bytes, maxDepth: JSON.maxBrokerDepth) : nil
        guard let document, var error = document["error"]?.object, let message = error["message"]?.string else {
            throw problem(bytes, response.status, of: host)
        }
        error["message"] = .string("on the host \(host): \(sanitized(message))")
        return ["jsonrpc": "2.0", "id": document["id"] ?? .null, "error": .object(error)]
    }
}
