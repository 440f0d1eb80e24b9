import AccessControl
import Model

/// Marks or removes the `resource_link`s of an app's result that the app cannot mean.
///
/// A client opens such a link with its own rights. A `file:` link of an app never names a file of the client: it names
/// one of the app's device, or a resource of its server. A link to Patchbay itself would use the client's grant.
package struct ResourceLinkFilter: Sendable {
    private static let loopbackNames: Set<String> = ["localhost", "[::1]", "[::]", "0.0.0.0", "[::ffff:127.0.0.1]"]

    /// The port of the broker's listener on loopback; nil without one.
    private let ownPort: UInt16?

    package init(ownPort: UInt16? = nil) { self.ownPort = ownPort }

    /// Marks and removes links.
    ///
    /// - Parameters:
    ///   - result: A `CallToolResult` from an app.
    ///   - id: The app.
    ///   - principal: The principal that gets the result.
    ///   - artifacts: The stored content that results refer to. Patchbay's own bridges return links to it.
    /// - Returns: The result with a note for each such link.
    func filtered(
        _ result: JSONObject,
        of id: EndpointID,
        for principal: Principal,
        _ artifacts: any ArtifactReader
    ) async -> JSONObject {
        guard let content = result["content"]?.array, content.contains(where: { $0["type"] == "resource_link" }) else {
            return result
        }
        var filtered: [JSON] = []
        for block in content {
            guard block["type"] == "resource_link", let uri = block["uri"]?.string else {
                filtered.append(block)
                continue
            }
            let shown = SanitizedText(uri, limit: 200)
            var meaning = meaning(of: uri)
            if case .artifact(let sha) = meaning {
                meaning = await artifacts.artifact(sha, for: principal) == nil ? .broker : .other
            }
            switch meaning {
            case .artifact, .other: filtered.append(block)
            case .file:
                let note = "[\(shown) is a resource of \(id), not a file of this machine]"
                filtered += [block, ["type": "text", "text": .string(note)]]
            case .broker:
                let note = "[a link of \(id) to Patchbay itself was removed: \(shown)]"
                filtered.append(["type": "text", "text": .string(note)])
            }
        }
        var result = result
        result["content"] = .array(filtered)
        return result
    }

    private enum Meaning {
        case file
        case artifact(String)
        case broker
        case other
    }

    private func meaning(of uri: String) -> Meaning {
        // Clients ignore the case of schemes and hosts (RFC 3986, section 6.2.2.1), and space around a URL.
        let text = uri.trimmed.lowercased()
        guard let colon = text.firstIndex(of: ":") else { return .other }
        switch text[..<colon] {
        case "file": return .file
        case "patchbay":
            let prefix = ArtifactStore.scheme
            return uri.hasPrefix(prefix) ? .artifact(String(uri.dropFirst(prefix.count))) : .broker
        case "http", "https", "ws", "wss": return isOwn(text[text.index(after: colon)...]) ? .broker : .other
        default: return .other
        }
    }

    /// Returns whether the rest of a URL leads to a listener of the broker on this machine.
    private func isOwn(_ rest: Substring) -> Bool {
        // Clients take backslashes for slashes (WHATWG URL standard).
        let authority = rest.drop { $0 == "/" || $0 == "\\" }.prefix { !"/\\?#".contains($0) }
        let address = authority.split(separator: "@").last ?? ""
        guard let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...]) else {
            return false
        }
        let host = address[..<colon]
        return port == ownPort && (Self.loopbackNames.contains(String(host)) || host.hasPrefix("127."))
    }
}
