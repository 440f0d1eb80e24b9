import Model
import SystemIO

/// Checks that clients of OAuth can reach the broker by a name that its certificate has.
enum OAuthCheck {
    /// - Returns: Nil without `api.oauth`. `certificateProblem` warns of a certificate that ends.
    static func run(settings: [String: JSON], remote: RemoteStatus?) -> Check? {
        guard settings["api.oauth"]?.bool == true else { return nil }
        guard let remote, remote.state != .off, let certificates = remote.certificates else {
            guard settings["api.tcp"]?.bool == false else {
                return .ok("oauth", "for clients on this machine; for other machines: patchbay remote on")
            }
            return .warn("oauth", "no listener has OAuth, because api.tcp is false", try: "patchbay remote on")
        }
        let names = (certificates.configured?.names ?? certificates.names).filter(isReachable)
        guard !names.isEmpty else {
            return .warn(
                "oauth",
                "the certificate of the remote listener has no host name for clients on other machines",
                try: "set api.remote_names, or api.remote_certificate and api.remote_key"
            )
        }
        let urls = names.map { "https://\($0):\(remote.port ?? 0)/mcp" }.joined(separator: ", ")
        guard certificates.configured == nil else { return .ok("oauth", urls) }
        return .ok("oauth", "\(urls), for clients that trust it: patchbay remote certificate --out ca.pem")
    }

    private static func isReachable(_ name: String) -> Bool {
        SocketAddress(numeric: name, port: 0) == nil && name != "localhost" && !name.hasSuffix(".localhost")
    }
}
