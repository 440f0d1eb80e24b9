@testable import AccessControl

/// Promises for OAuth requests: a form reads back what was written, and a browser goes to the host that people see.
enum OAuthPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        let text = String(decoding: input, as: UTF8.self)
        try form(text)
        try redirect(text)
        var choices = Choices(input)
        let scheme = choices.one(of: ["https://", "http://localhost", "http://127.0.0.1:8080", "http://[::1]"])
        try redirect(scheme + choices.letters(choices.number(below: 24), of: Array("ab.:/@?=&%[]#\\1".utf8)))
    }

    private static func form(_ text: String) throws(Violation) {
        let encoded = FormEncoding.encode(text)
        try promise("an encoded text is plain", encoded.utf8.allSatisfy { (0x21..<0x7F).contains($0) && $0 != 0x26 })
        let read = try? FormEncoding.parameters(of: "a=\(encoded)&b=1")
        try promise("a parameter is what was written", read?["a"] ?? "" == text && read?["b"] == "1")
        guard let parameters = try? FormEncoding.parameters(of: text) else { return }
        try promise("parameters are bounded", parameters.count <= FormEncoding.limit)
        let pairs = parameters.map { "\(FormEncoding.encode($0))=\(FormEncoding.encode($1))" }
        try promise(
            "parameters read back as they were",
            (try? FormEncoding.parameters(of: pairs.joined(separator: "&"))) == parameters
        )
    }

    private static func redirect(_ text: String) throws(Violation) {
        guard let uri = try? RedirectURI(text) else { return }
        try promise("no backslash, and no fragment", !text.contains("\\") && !text.contains("#"))
        try promise("a URI allows itself", uri.allows(uri))
        try web(uri)
        let added = uri.adding([(name: "code", value: "a b&c")])
        try promise("a parameter is added", added.hasPrefix(text) && added.hasSuffix("code=a%20b%26c"))
    }

    /// A browser shows people where it goes.
    private static func web(_ uri: RedirectURI) throws(Violation) {
        guard ["http://", "https://"].contains(where: { uri.text.hasPrefix($0) }) else { return }
        let isLoopback = ["http://localhost", "http://127.0.0.1", "http://[::1]"].contains { uri.text.hasPrefix($0) }
        try promise("http stays on the machine", uri.text.hasPrefix("https://") || isLoopback)
        try promise(
            "what is shown begins the URI, and has no user",
            uri.text.hasPrefix(uri.origin) && !uri.origin.contains("@")
        )
        let rest = uri.text.dropFirst(uri.origin.count)
        try promise(
            "after what is shown comes a path or nothing",
            rest.isEmpty || rest.first == "/" || rest.first == "?"
        )
    }
}
