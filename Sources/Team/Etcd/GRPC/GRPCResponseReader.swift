import NIOCore
import NIOHPACK

/// Reads the response to a gRPC call: headers, messages, and the status in the trailers.
///
/// A response without messages may have its status in the headers ("Trailers-Only").
struct GRPCResponseReader {
    enum Part: Hashable {
        case message(ByteBuffer)
        case end(GRPCStatus)
    }

    private var decoder = GRPCFrameDecoder()
    private var hasHead = false

    /// Reads a block of headers or trailers.
    mutating func receive(_ headers: HPACKHeaders, isLast: Bool) throws(EtcdError) -> [Part] {
        if !hasHead {
            hasHead = true
            let status = headers.first(name: ":status") ?? ""
            guard status == "200" else { throw .httpStatus(status) }
            guard isLast else { return [] }
        }
        guard isLast else { throw .invalidResponse(reason: "the server sent headers between messages") }
        return [.end(try status(in: headers))]
    }

    /// Reads a part of the body.
    mutating func receive(_ bytes: ByteBuffer, isLast: Bool) throws(EtcdError) -> [Part] {
        guard hasHead else { throw .invalidResponse(reason: "the server sent a message before the headers") }
        decoder.append(bytes)
        var parts: [Part] = []
        while let message = try decoder.next() { parts.append(.message(message)) }
        if isLast { throw .invalidResponse(reason: "the response ended without a status") }
        return parts
    }

    private func status(in trailers: HPACKHeaders) throws(EtcdError) -> GRPCStatus {
        guard !decoder.hasRest else { throw .invalidResponse(reason: "the response ended inside a message") }
        guard let code = trailers.first(name: "grpc-status"),
            let status = GRPCStatus(code: code, message: trailers.first(name: "grpc-message"))
        else { throw .invalidResponse(reason: "the response ended without a status") }
        return status
    }
}
