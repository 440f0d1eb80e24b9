import Client
import FoundationEssentials
import Model

/// Polls an open invite until the invite ends. Reports each redemption and the remaining time.
struct InviteMonitor {
    let client: PatchbayClient
    let issued: IssuedInvite
    /// Receives each new grant once.
    let joined: @Sendable (Grant) throws -> Void
    /// Receives the remaining seconds, once a second.
    let left: @Sendable (Double) -> Void
    var clock: any Clock<Duration> = ContinuousClock()
    var now: @Sendable () -> Date = { Date() }

    private static let interval = Duration.seconds(1)

    /// Returns the ended invite. Retries while the broker restarts.
    ///
    /// Polls once a second. The event stream has no redemptions, because its readers need only `registry.read`.
    func watch() async throws -> Invite {
        var known: Set<String> = []
        while true {
            do {
                let invites = try await client.invites()
                guard let invite = invites.first(where: { $0.id == issued.invite.id }) else {
                    throw CLIError.notFound("invite \(issued.invite.id) no longer exists", try: "patchbay pair")
                }
                if invite.useCount > known.count {
                    let grants = try await client.grants()
                    for grant in grants.reversed() where grant.invite == invite.id && known.insert(grant.id).inserted {
                        try joined(grant)
                    }
                }
                if invite.endReason != nil { return invite }
            } catch let error as ClientError where error.isTemporary {
                // The invite stays valid while the broker restarts, until its own expiry.
                guard now() < issued.invite.expiresAt else { throw error }
            }
            left(issued.invite.expiresAt.timeIntervalSince(now()))
            try await clock.sleep(for: Self.interval)
        }
    }
}

/// The text that `patchbay pair` prints for an invite: QR code, pairing string and instructions.
enum PairingInstructions {
    /// Builds the instructions.
    ///
    /// - Parameters:
    ///   - issued: The invite.
    ///   - string: The pairing string to scan or paste.
    ///   - terminal: The terminal's size. Without a terminal the value is nil and the QR code is omitted.
    ///   - isColoured: True to draw the QR code black on white.
    /// - Returns: Lines without a final line break.
    /// - Throws: `QRError` if the string cannot be encoded as a QR code.
    static func text(
        _ issued: IssuedInvite,
        string: String,
        terminal: Console.Size?,
        isColoured: Bool
    ) throws -> String {
        var lines: [String] = []
        var hasCode = false
        if let terminal {
            let code = try QRCode(string)
            let rows = code.halfBlocks(isColoured: isColoured)
            hasCode = code.fullSize <= terminal.columns && rows.count <= terminal.rows
            if hasCode {
                lines += rows
            } else {
                lines.append(
                    "The QR code needs \(code.fullSize) columns and \(rows.count) rows, but the terminal has "
                        + "\(terminal.columns) and \(terminal.rows)."
                )
            }
        }
        let permissions = issued.invite.permissions
        lines += [
            string, "",
            instruction(for: issued.invite.use ?? .local, hasCode: hasCode),
            "Grants \(permissions) on \(Formatting.selector(permissions.selector)).",
        ]
        if let addresses = issued.addresses, addresses.count > 1 {
            lines.append("The broker listens at \(addresses.joined(separator: ", ")); choose one with --host.")
        }
        if let addresses = issued.addresses, addresses.allSatisfy(isLoopback) {
            lines.append("Other machines cannot reach the listener, because it is on loopback; try: patchbay remote on")
        }
        return lines.joined(separator: "\n")
    }

    /// Returns whether a numeric address with its port is reachable on this machine only.
    private static func isLoopback(_ address: String) -> Bool {
        address.hasPrefix("127.") || address.hasPrefix("[::1]")
    }

    private static func instruction(for use: InviteUse, hasCode: Bool) -> String {
        switch use {
        case .local where hasCode: "Scan the code, or run `patchbay join -` on the other side and paste the string."
        case .local: "Run `patchbay join -` on the other side and paste the string."
        case .remote: "Run `patchbay join -` on the other machine and paste the string."
        case .bearer: "Run `patchbay join --print -` on the other machine and paste the string; it prints the token."
        case .device: hasCode ? "Scan the code with the app." : "Paste the string into the app."
        }
    }
}

/// A status line on standard error that is overwritten with each update.
struct StatusLine: Sendable {
    let errors: Console
    /// False to suppress the line, for example with `--json`.
    let isShown: Bool

    /// Replaces the current line. `ESC [ K` (ECMA-48 EL) erases the rest of the previous text.
    func show(_ text: String) {
        if isShown, errors.isTerminal { errors.write("\r\(text)\u{1B}[K") }
    }

    /// Erases the line.
    func clear() {
        if isShown, errors.isTerminal { errors.write("\r\u{1B}[K") }
    }
}
