import Client
import FoundationEssentials
import Model

/// Creates a unix socket for one grant, and tells how a container uses it.
struct SocketPairing {
    /// The path of the socket, as typed.
    let path: String
    let permissions: Permissions
    let lifetimeSeconds: Int?
    let idleSeconds: Int?

    /// The file name of the system's broker. A mounted folder with it needs no options in the container.
    private static let standardName = "patchbay.sock"

    /// Creates the grant and its socket.
    ///
    /// - Throws: `CLIError`, `ClientError`.
    func create(_ client: PatchbayClient) async throws -> Grant {
        guard !client.address.isOnAnotherMachine else {
            throw CLIError.usage(
                "--socket creates a socket on the broker's machine, and \(client.address) is another machine",
                try: "run the command there, without --broker"
            )
        }
        let spec = SocketGrantSpec(
            path: absolutePath,
            name: SanitizedText("socket \(path.split(separator: "/").last ?? "")"),
            permissions: permissions,
            lifetimeSeconds: lifetimeSeconds,
            idleSeconds: idleSeconds
        )
        do {
            return try await client.createGrant(spec)
        } catch ClientError.refused(let problem) where problem.code == .conflict && problem.detail.contains("in use") {
            throw CLIError(
                status: .error,
                message: problem.detail,
                hint: "choose another path; PATCHBAY_SOCKET=\(path) patchbay pair connects to the broker there",
                problem: problem
            )
        }
    }

    /// The absolute path, without `.` and `..`.
    private var absolutePath: String {
        let full = path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
        var parts: [Substring] = []
        for part in full.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// The text for the new grant.
    func text(_ grant: Grant) -> String {
        let path = absolutePath
        let end = path.lastIndex(of: "/") ?? path.startIndex
        let (folder, name) = (String(path[..<end]), String(path[end...].dropFirst()))
        let lifetime = Formatting.duration(grant.expiresAt.timeIntervalSince(grant.createdAt))
        var lines = [
            "Open: \(path)",
            "Every client on this socket has the grant \(grant.id), also uid 0. No client on it is an owner.",
            "Grants \(grant.permissions) on \(Formatting.selector(grant.permissions.selector)).",
            "Ends in \(lifetime), after \(Formatting.duration(Double(grant.idleSeconds))) without use, or with "
                + "`patchbay revoke \(grant.id)`.",
            "",
            "Mount the folder, and not the file: the broker creates a new file when it starts.",
            "  podman run -v \(folder):/run/patchbay:ro …",
            name == Self.standardName
                ? "In the container, `patchbay list` and `patchbay mcp` need no options."
                : "In the container, use `patchbay list --socket /run/patchbay/\(name)`.",
        ]
        let others = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0 != name }
        if !others.isEmpty {
            let count = Formatting.count(others.count, "other file")
            lines.append("The folder has \(count), which the container sees too.")
        }
        return lines.joined(separator: "\n")
    }
}
