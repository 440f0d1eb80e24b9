import Client
import FoundationEssentials
import Model
import QR

/// An open invite, watched until it closes: who joined, and how much time is left.
struct InviteMonitor {
    let client: PatchbayClient
    let issued: IssuedInvite
    /// Told each redeemer once.
    let joined: @Sendable (Grant) throws -> Void
    /// Told once a second how long it stays open.
    let left: @Sendable (Double) -> Void
    var clock: any Clock<Duration> = ContinuousClock()
    var now: @Sendable () -> Date = { Date() }

    private static let interval = Duration.seconds(1)

    /// Returns how it closed. A broker that restarts meanwhile is waited for.
    ///
    /// The broker is asked each second: a redemption is told in no feed, as who may see endpoints may not see this.
    func watch() async throws -> Invite {
        var known: Set<String> = []
        while true {
            do {
                let invites = try await client.invites().invites
                guard let invite = invites.first(where: { $0.id == issued.invite.id }) else {
                    throw CLIError(
                        status: .notFound,
                        message: "the broker does not know invite \(issued.invite.id) any more",
                        remedy: "patchbay pair"
                    )
                }
                if invite.used > known.count {
                    let grants = try await client.grants().grants
                    for grant in grants.reversed() where grant.invite == invite.id && known.insert(grant.id).inserted {
                        try joined(grant)
                    }
                }
                if invite.end != nil { return invite }
            } catch let error as ClientError where error.isPassing {
                // The window stays open while the broker restarts, and no longer than it was to be.
                guard now() < issued.invite.expires else { throw error }
            }
            left(issued.invite.expires.timeIntervalSince(now()))
            try await clock.sleep(for: Self.interval)
        }
    }
}

/// What a person sees while a pairing window is open: the QR code, the string, and how to use them.
enum PairingInstructions {
    /// - Parameters:
    ///   - issued: The invite.
    ///   - string: What to scan or paste.
    ///   - width: The terminal's; nil where there is none, and then there is no code either.
    ///   - isColoured: Whether the code is drawn black on white.
    /// - Returns: Lines without a final line break.
    /// - Throws: `QRError` when no code can be made of the string.
    static func text(_ issued: IssuedInvite, string: String, width: Int?, isColoured: Bool) throws -> String {
        var lines: [String] = []
        if let width {
            let code = try QRCode(string)
            if code.fullSize <= width {
                lines += code.halfBlocks(isColoured: isColoured)
            } else {
                lines.append("The terminal has \(width) columns, and the QR code needs \(code.fullSize).")
            }
        }
        let permissions = issued.invite.permissions
        lines += [
            string, "",
            "Scan it, or type `patchbay join -` on the other side and paste it there.",
            "It gives \(Formatting.scopes(permissions)) on \(Formatting.selector(permissions.selector)).",
        ]
        return lines.joined(separator: "\n")
    }
}

/// The last line of a terminal, written again and again.
struct StatusLine: Sendable {
    let errors: Console
    /// Whether somebody looks; where the line would go to a file, it is left out.
    let isShown: Bool

    /// Writes the text over what stood there (`ESC [ K`, ECMA-48 EL, removes the rest of that).
    func show(_ text: String) {
        if isShown, errors.isTerminal { errors.write("\r\(text)\u{1B}[K") }
    }

    func clear() {
        if isShown, errors.isTerminal { errors.write("\r\u{1B}[K") }
    }
}
