import FoundationEssentials
import Glibc
import Model
import SystemIO
import Tunnels

/// The paths at which clients can reach the socket of a grant.
package struct GrantSocketPlaces: Sendable {
    let sockets: UnixSocketReachability
    /// A folder for sockets that only owners can reach, such as /run/patchbay/grants of a service; nil if there is none.
    let ownersFolder: String?
    let owners: OwnerPolicy

    /// Reads the folders of the service from the environment.
    package init(environment: [String: String], owners: OwnerPolicy) {
        sockets = ServiceFolders.sockets(environment: environment)
        ownersFolder = ServiceFolders.grants(environment: environment)
        self.owners = owners
    }

    /// Opens the socket of a grant. A missing folder is created.
    ///
    /// - Parameters:
    ///   - path: The absolute path of the socket.
    ///   - user: The user who asks; nil for an owner whom the kernel does not report.
    /// - Returns: The listening socket.
    /// - Throws: `Problem`.
    func listen(at path: String, for user: UInt32?) throws -> Listener {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard path.hasPrefix("/"), path.utf8.count <= ListenAddress.pathLimit,
            parts.dropFirst().allSatisfy({
                !["", ".", ".."].contains($0)
            })
        else {
            throw Problem(
                .badRequest,
                "\"\(SanitizedText(path))\" cannot be a socket: it must be an absolute path of at most "
                    + "\(ListenAddress.pathLimit) bytes",
                hint: "choose another path: patchbay pair --socket PATH"
            )
        }
        let access = try access(to: path, for: user)
        let folder = parts.count == 2 ? "/" : parts.dropLast().joined(separator: "/")
        do {
            try makeFolder(folder, isShared: access.mode == Self.sharedMode)
            return try Listener(on: .unix(path: path), access: access)
        } catch let error as SocketError {
            let isMissing = if case .failed(_, _, ENOENT) = error { true } else { false }
            throw Problem(
                .conflict,
                "\(error)",
                hint: isMissing
                    ? "create the folder first: mkdir -p \(folder.shellQuoted)"
                    : "choose another path: patchbay pair --socket PATH"
            )
        }
    }

    /// Opens the socket of a grant after a restart. Another user than the broker's has sockets only in the folder of
    /// owners, where the user does not matter.
    ///
    /// - Throws: `Problem`.
    func reopen(at path: String) throws -> Listener { try listen(at: path, for: sockets.brokerUser) }

    /// The mode of a socket in a folder that only owners can reach. In a container, any user may connect.
    private static let sharedMode: UInt32 = 0o666

    private func access(to path: String, for user: UInt32?) throws(Problem) -> UnixSocketAccess {
        if let ownersFolder, path.hasPrefix("\(ownersFolder)/") { return UnixSocketAccess(mode: Self.sharedMode) }
        let name = path.split(separator: "/").dropLast().last ?? "agent"
        let hint =
            ownersFolder.map { "patchbay pair --socket \("\($0)/\(name)/patchbay.sock".shellQuoted)" }
            ?? "run the broker as your own user"
        if let folder = sockets.privateFolder(of: path) {
            throw Problem(
                .conflict,
                "the broker runs as a service with a \(folder) of its own, so no other program finds \(path)",
                hint: hint
            )
        }
        // Another user could replace a folder of the path between two system calls of the broker, which would then create
        // or change a file elsewhere, in the worst case as root.
        guard user == sockets.brokerUser || user == nil && sockets.brokerUser != 0 else {
            throw Problem(
                .conflict,
                "the broker runs as user \(sockets.brokerUser) and cannot give a socket in this folder to "
                    + (user.map { "user \($0)" } ?? "a user it does not know"),
                hint: hint
            )
        }
        return .private
    }

    /// Creates the folder of a socket with mode 0700. Below the folder of the owners the mode is 0755, because every user
    /// of a container may look up the socket. The folder of the owners itself keeps other users out.
    private func makeFolder(_ folder: String, isShared: Bool) throws(SocketError) {
        if isShared, let ownersFolder {
            if let group = owners.group { lchown(ownersFolder, .max, group) }
            // Every user may connect to the sockets, so no other user may enter the folder.
            guard chmod(ownersFolder, 0o750) == 0 else { throw .failed(call: "chmod", on: ownersFolder, code: errno) }
        }
        guard !FileManager.default.fileExists(atPath: folder) else { return }
        guard mkdir(folder, 0o700) == 0, !isShared || chmod(folder, 0o755) == 0 else {
            throw .failed(call: "mkdir", on: folder, code: errno)
        }
    }
}
