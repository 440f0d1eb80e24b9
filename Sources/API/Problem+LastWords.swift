import FoundationEssentials
import HTTPTypes
import Model

extension Problem {
    /// The whole answer as bytes, for where there is no request yet that it would be an answer to. The connection ends with it.
    var lastWords: String {
        let body = (try? JSONCoding.encoder().encode(self)) ?? Data()
        let fields = [
            "HTTP/1.1 \(status) \(HTTPResponse.Status(code: status).reasonPhrase)",
            "Content-Type: application/problem+json", "Content-Length: \(body.count)", "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff", "Connection: close",
        ]
        return fields.joined(separator: "\r\n") + "\r\n\r\n" + String(decoding: body, as: UTF8.self)
    }
}
