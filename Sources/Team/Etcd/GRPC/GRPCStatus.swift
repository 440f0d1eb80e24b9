/// The result of a gRPC call, which the server sends as the trailers `grpc-status` and `grpc-message`.
struct GRPCStatus: Hashable, Sendable {
    /// The codes that this module tells apart.
    struct Code: RawRepresentable, Hashable, Sendable {
        let rawValue: Int

        static let ok = Code(rawValue: 0)
        static let cancelled = Code(rawValue: 1)
        static let deadlineExceeded = Code(rawValue: 4)
        static let permissionDenied = Code(rawValue: 7)
        static let unavailable = Code(rawValue: 14)
        static let unauthenticated = Code(rawValue: 16)
    }

    let code: Code
    let message: String

    init(code: Code, message: String = "") {
        self.code = code
        self.message = message
    }

    /// Parses the values of `grpc-status` and `grpc-message`, which is percent-encoded. Returns nil unless the code is a
    /// number.
    init?(code: String, message: String?) {
        guard let number = Int(code), number >= 0 else { return nil }
        self.init(code: Code(rawValue: number), message: message.map(Self.decoded) ?? "")
    }

    /// Decodes percent-encoding as in gRPC's specification: an invalid sequence stays as it is.
    private static func decoded(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let byte = UInt8(String(decoding: bytes[index + 1...index + 2], as: UTF8.self), radix: 16)
            {
                output.append(byte)
                index += 3
            } else {
                output.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}
