import Model

/// The address and the session token that AppReveal logs at each launch of an app.
struct SessionURL: Sendable, Equatable {
    /// The address of an app, as the app itself names it.
    struct Origin: Hashable, Sendable {
        /// A host name in lower case, or a numeric address without brackets and scope.
        let host: String
        let port: UInt16

        /// Returns the host of an authority without its port (RFC 3986, section 3.2).
        static func host(in authority: Substring) -> String {
            let host = authority.split(separator: "@").last ?? ""
            return host.trimming { $0 == "[" || $0 == "]" }.prefix { $0 != "%" }.lowercased()
        }

        /// True for an address of the machine that wrote the log, which may be a phone.
        private var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

        /// Returns whether the app at a route can have logged this address.
        ///
        /// The port of a cable leads to the loopback of the phone.
        func fits(_ route: Route) -> Bool {
            guard route.port == port else { return false }
            switch route {
            case .usb: return isLoopback
            case .network(let network):
                if isLoopback { return Origin(host: network.address, port: port).isLoopback }
                return network.address == host || network.machine?.text.lowercased() == host
            }
        }
    }

    /// The length of AppReveal's tokens: 32 bytes in hexadecimal.
    static let tokenLength = 64

    let origin: Origin
    let token: Secret

    /// Returns whether a text is a complete token of AppReveal.
    static func isToken(_ text: String) -> Bool {
        text.utf8.count == tokenLength && text.utf8.allSatisfy(\.isHexadecimal)
    }

    var port: UInt16 { origin.port }
}

extension Substring {
    /// Returns the text without the characters at its ends that match.
    fileprivate func trimming(_ isTrimmed: (Character) -> Bool) -> Substring {
        guard let first = firstIndex(where: { !isTrimmed($0) }), let last = lastIndex(where: { !isTrimmed($0) }) else {
            return ""
        }
        return self[first...last]
    }
}
