import Model

/// The advertisement of a Dart VM service, split into its secret and a TXT record without secrets.
///
/// The app announces `_dartVmService._tcp` with the key `authCode`. Flutter's tool announces `_flutter_devices._tcp` with
/// the URL of the service in the key `ws_uri`.
struct DartVMAdvertisement {
    /// The text that replaces a secret in the TXT record.
    private static let redacted = "(secret)"

    let authCode: DartAuthCode?
    let txt: TXTRecord

    /// - Parameters:
    ///   - received: The TXT record as received.
    ///   - port: The port of the SRV record. A `ws_uri` with another port belongs to another service and is ignored.
    init(_ received: TXTRecord, port: UInt16) {
        authCode =
            received["authCode"].flatMap { DartAuthCode($0) }
            ?? received["ws_uri"].flatMap { VMServiceURI($0) }.flatMap { $0.port == port ? $0.authCode : nil }
        var txt = received
        for entry in received.entries {
            guard let value = entry.value, let shown = Self.redacting(value, of: entry.key) else { continue }
            txt.set(entry.key, to: Array(shown.utf8))
        }
        self.txt = txt
    }

    /// Returns the value of a key without its secret. Returns nil for a value without a secret.
    ///
    /// The path of every URL is a secret: the tool may announce the URLs of further servers, each with a code of its own.
    private static func redacting(_ value: [UInt8], of key: String) -> String? {
        if key.lowercased() == "authcode" { return value.isEmpty ? nil : redacted }
        let text = String(decoding: value, as: UTF8.self)
        guard let scheme = text.firstRange(of: "://") else { return nil }
        let authority = text[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        // An authority may contain a password (RFC 3986, section 3.2.1).
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        return "\(text[..<scheme.upperBound])\(host)/\(redacted)"
    }
}

/// The URL of a VM service on the loopback of the host that announces it: `ws://127.0.0.1:8181/CODE=/ws`.
private struct VMServiceURI {
    let port: UInt16
    let authCode: DartAuthCode?

    /// Parses the forms of Flutter's tool: scheme `ws` or `http`, with or without the final segment `ws`.
    init?(_ text: String) {
        guard let scheme = ["ws://", "http://"].first(where: text.hasPrefix),
            let host = ["127.0.0.1:", "[::1]:", "localhost:"].first(where: text.dropFirst(scheme.count).hasPrefix)
        else { return nil }
        var segments = text.dropFirst(scheme.count + host.count).split(
            separator: "/",
            omittingEmptySubsequences: false
        )[...]
        guard let port = segments.popFirst().flatMap({ UInt16($0) }) else { return nil }
        self.port = port
        if segments.last == "" { segments.removeLast() }
        if segments.last == "ws" { segments.removeLast() }
        guard segments.count <= 1 else { return nil }
        authCode = segments.first.flatMap { DartAuthCode($0) }
    }
}
