import Client
import Model

/// What `patchbay join` reads: a pairing string of this machine, or an invite alone.
struct PairingArgument {
    /// Where to spend the invite; nil for the broker at the usual socket.
    let broker: BrokerAddress?
    let invite: Secret

    private static let lengthLimit = 256

    /// - Throws: `CLIError`, which does not repeat what was given.
    init(_ text: String) throws(CLIError) {
        guard text.utf8.prefix(Self.lengthLimit + 1).count <= Self.lengthLimit else {
            throw Self.refusal("it has more than \(Self.lengthLimit) bytes")
        }
        if text.hasPrefix("pbi_") {
            self.init(broker: nil, invite: try Self.invite(text))
            return
        }
        guard text.hasPrefix("PATCHBAY:") else {
            throw Self.refusal("it begins neither with PATCHBAY: nor with pbi_")
        }
        // From the end, as an IPv6 address has colons of its own.
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 6, parts[1] == "1" else {
            throw Self.refusal("its version is not 1; use the same version of Patchbay on both sides")
        }
        let host = parts[2..<(parts.count - 3)].joined(separator: ":")
        guard let port = UInt16(parts[parts.count - 3]), port > 0 else {
            throw Self.refusal("its address is not a host and a port")
        }
        guard host == "127.0.0.1" || host == "[::1]", parts[parts.count - 2].isEmpty else {
            throw CLIError(
                status: .notPermitted,
                message: "that pairing string is for a broker on another machine, \(SanitizedText(host)), "
                    + "and joining over the network is not in this version; the invite was not sent",
                remedy: "patchbay join - on that machine itself"
            )
        }
        let invite = try Self.invite(String(parts[parts.count - 1]))
        self.init(broker: .loopback(host: host.filter { $0 != "[" && $0 != "]" }, port: port), invite: invite)
    }

    private init(broker: BrokerAddress?, invite: Secret) {
        self.broker = broker
        self.invite = invite
    }

    /// A mistyped one is told here: at the broker it would count as a guess.
    private static func invite(_ text: String) throws(CLIError) -> Secret {
        guard TokenFormat.parts(of: text)?.kind == .invite else {
            throw refusal("its invite is mistyped or cut off; copy it whole")
        }
        return Secret(text)
    }

    private static func refusal(_ why: String) -> CLIError {
        .usage("that is no pairing string: \(why)", try: "patchbay pair on the broker's side shows a new one")
    }
}
