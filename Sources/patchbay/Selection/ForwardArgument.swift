import Model

/// One word of `patchbay forward`: where to listen, and to a phone, on which of its ports it ends.
///
/// | to a phone | to an endpoint |
/// |---|---|
/// | `9876` (the same port here), `8080:9876`, `0:9876`, `tcp:0:9876` | `8080`, `tcp:0` |
/// | `127.0.0.1:8080:9876`, `tcp:[::1]:8080:9876` | `127.0.0.1:8080`, `tcp:[::1]:8080` |
/// | `unix:/run/shop.sock:9876` | `unix:/run/shop.sock` |
struct ForwardArgument: Equatable {
    let local: LocalAddress
    /// The port on the phone; nil for endpoints, which have their own.
    let remote: UInt16?

    /// - Parameters:
    ///   - text: `[LOCAL:]REMOTE`.
    ///   - source: The address of `--source-address`, for a LOCAL that names none.
    /// - Throws: `Complaint`.
    init(toDevice text: String, source: String?) throws(Complaint) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let last = parts.last, let port = UInt16(last), port > 0, last.allSatisfy(\.isNumber) else {
            throw .usage(
                "\"\(Untrusted(text))\" does not end with a port of the phone, 1 to 65535",
                try: "8080:9876, tcp:0:9876 or unix:/tmp/shop.sock:9876"
            )
        }
        remote = port
        guard parts.count > 1 else {
            local = .tcp(host: source, port: port)
            return
        }
        let head = String(text.dropLast(last.count + 1))
        local = try Self.local(head, of: text, source: source, example: "8080:\(port) or tcp:127.0.0.1:0:\(port)")
    }

    /// - Parameters:
    ///   - text: `LOCAL`; nil lets the kernel choose a port.
    ///   - source: The address of `--source-address`, for a LOCAL that names none.
    /// - Throws: `Complaint`.
    init(toEndpoint text: String?, source: String?) throws(Complaint) {
        remote = nil
        guard let text else {
            local = .tcp(host: source, port: 0)
            return
        }
        local = try Self.local(text, of: text, source: source, example: "8080, tcp:0 or unix:/tmp/shop.sock")
    }

    private static func local(
        _ text: String,
        of whole: String,
        source: String?,
        example: String
    ) throws(Complaint) -> LocalAddress {
        guard let address = LocalAddress(text) else {
            throw .usage("\"\(Untrusted(text))\" is not a local address, in \"\(Untrusted(whole))\"", try: example)
        }
        switch address {
        // `8080:9876` would be a host named 8080: somebody gave a phone's port where there is none to give.
        case .tcp(let host?, _) where host.allSatisfy(\.isNumber):
            throw .usage("\"\(host)\" in \"\(Untrusted(whole))\" is no address to listen on", try: example)
        case .tcp(let host?, _) where source != nil:
            throw .usage(
                "\(whole) names the address \(host) and --source-address another",
                try: "leave one of them out"
            )
        case .tcp(nil, let port): return .tcp(host: source, port: port)
        case .unix where source != nil:
            throw .usage("--source-address means nothing to the socket \(text)", try: "leave --source-address out")
        case .tcp, .unix: return address
        }
    }
}
