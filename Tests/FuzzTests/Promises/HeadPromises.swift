import AccessControl
import HTTPTypes
import Model

@testable import API

/// Promises for request heads: the rules of `RequestValidator` and the detection of leaked tokens.
enum HeadPromises {
    private static let page = "http://localhost:5173"
    private static let fields: [(name: String, values: [String])] = [
        ("Host", ["localhost", "evil.test"]),
        ("Origin", [page, "null", "https://evil.test", "", "http://localhost:7282"]),
        ("Sec-Fetch-Site", ["none", "cross-site"]),
        ("Content-Type", ["application/json", "Application/JSON ; charset=utf-8", "text/plain", ""]),
        ("Content-Length", ["0", "2", "00"]), ("Transfer-Encoding", ["chunked", "gzip, chunked", ""]),
    ]

    static func check(_ input: [UInt8]) throws(Violation) {
        var choices = Choices(input)
        try validation(&choices)
        choices = Choices(input)
        try exposed(&choices)
        choices = Choices(input)
        try target(&choices)
        let text = String(decoding: input, as: UTF8.self)
        _ = LeakedTokenDetector.find(in: text)
        guard let shown = Authenticator.bearer(text) else { return }
        try promise("what is shown is the end of the field", text.utf8.reversed().starts(with: shown.utf8.reversed()))
    }

    // MARK: Request validation

    /// A request is accepted exactly if it meets every rule, checked one by one.
    private static func validation(_ choices: inout Choices) throws(Violation) {
        let port: UInt16? = choices.one(of: [7_282, nil])
        let method = choices.one(of: [HTTPRequest.Method.get, .post, .delete, .options])
        var request = HTTPRequest(method: method, scheme: "http", authority: host(&choices), path: "/v1/endpoints")
        var sent: [String: [String]] = [:]
        for _ in 0..<choices.number(below: 6) {
            let field = choices.one(of: fields)
            let isKnown = choices.number(below: 3) > 0
            let value = isKnown ? choices.one(of: field.values) : String(decoding: choices.run(), as: UTF8.self)
            guard let name = HTTPField.Name(field.name) else { continue }
            // A field removes characters from its value that no head can contain.
            let made = HTTPField(name: name, value: value)
            request.headerFields.append(made)
            sent[field.name, default: []].append(made.value)
        }

        let hosts = [request.authority].compactMap { $0 } + sent["Host", default: []]
        let codings = sent["Transfer-Encoding", default: []]
        let types = sent["Content-Type", default: []]
        let hasLength = sent["Content-Length", default: []].contains { $0 != "0" }
        let pages = sent["Origin", default: []]
        let rules = [
            hosts.count == 1 && hosts.allSatisfy { isOurs($0, port) }, method != .options,
            pages.allSatisfy { $0.utf8.elementsEqual(page.utf8) || isOwn($0, hosts.first, port) },
            !pages.isEmpty || sent["Sec-Fetch-Site", default: []].allSatisfy { $0 == "none" },
            codings.isEmpty || codings == ["chunked"],
            !hasLength && codings.isEmpty || types.isEmpty && !codings.isEmpty || types.count == 1 && isJSON(types[0]),
        ]
        let mayPass = rules.allSatisfy { $0 }
        let validator = RequestValidator(hostHeaderRule: .loopback(port: port), allowedOrigins: [page])
        let passes = (try? validator.validate(request)) != nil
        let isPlain = (hosts + sent.values.joined()).allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }
        try promise("nobody passes against a rule: \(request) by \(rules)", !passes || mayPass)
        try promise("whoever keeps the rules passes: \(request)", passes || !mayPass || !isPlain)
    }

    /// True for the origin of the listener itself, which has its host and its port.
    private static func isOwn(_ origin: String, _ host: String?, _ port: UInt16?) -> Bool {
        port != nil && origin == "http://localhost:7282" && host?.lowercased() == "localhost:7282"
    }

    private static func host(_ choices: inout Choices) -> String? {
        var host = Array(choices.one(of: ["localhost", "LocalHost", "127.0.0.1", "[::1]"]).utf8)
        host += choices.one(of: ["", ":7282", ":7283", ":0", ":07282", ":+7282", ":65536", ".", "@evil.test"]).utf8
        for _ in 0..<choices.number(below: 3) { choices.edit(&host) }
        return choices.number(below: 16) == 1 ? nil : String(decoding: host, as: UTF8.self)
    }

    /// True for the accepted host spellings: letters in either case and a decimal port.
    private static func isOurs(_ host: String, _ port: UInt16?) -> Bool {
        let host = host.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        return ["localhost", "127.0.0.1", "[::1]"].contains { name in
            guard host.starts(with: name.utf8) else { return false }
            let rest = host.dropFirst(name.utf8.count)
            if rest.isEmpty { return true }
            guard let number = UInt16(String(decoding: rest.dropFirst(), as: UTF8.self)) else { return false }
            return rest.elementsEqual(":\(number)".utf8) && number > 0 && (port ?? number) == number
        }
    }

    private static func isJSON(_ type: String) -> Bool {
        var bytes = type.utf8.prefix { $0 != UInt8(ascii: ";") }
        bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        return bytes.map { $0 | 0x20 } == Array("application/json".utf8)
    }

    // MARK: Leaked tokens

    /// A token is detected within any text, escaped or not.
    private static func exposed(_ choices: inout Choices) throws(Violation) {
        let token = TokenPromises.made(&choices)
        var place = choices.bytes(choices.number(below: 8))
        for _ in 0..<choices.number(below: 3) { choices.edit(&place) }
        for byte in token {
            let isEscaped = choices.number(below: 3) == 1
            place += isEscaped ? Array("%\(String(byte, radix: 16))".utf8) : [byte]
        }
        place += choices.bytes(choices.number(below: 8))
        let text = String(decoding: place, as: UTF8.self)
        let id = String(decoding: token[4..<12], as: UTF8.self)

        var request = HTTPRequest(method: .get, scheme: "http", authority: "localhost", path: "/?\(text)")
        try promise("a token in an address is found: \(text)", finds(id, in: request))
        request.path = "/"
        request.headerFields[.cookie] = "a=\(text)"
        try promise("a token in a cookie is found: \(text)", finds(id, in: request))
    }

    private static func finds(_ id: String, in request: HTTPRequest) -> Bool {
        LeakedTokenDetector.find(in: request)?.contains { $0.id == id } ?? false
    }

    /// A request target in absolute form contains its host.
    private static func target(_ choices: inout Choices) throws(Violation) {
        let name = choices.letters(choices.number(below: 40), of: Array("az09.:-[]@%".utf8))
        let rest = choices.one(of: ["", "/", "?", "#"])
        let tail = rest.isEmpty ? "" : rest + choices.letters(choices.number(below: 8), of: Array("a/?#:".utf8))
        try promise(
            "an absolute target names its host",
            RequestProgressHandler.host(in: "http://\(name)\(tail)") == name
        )
        try promise("a path names none", RequestProgressHandler.host(in: "/\(name)\(tail)") == nil)
    }
}
