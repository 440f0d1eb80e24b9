import Glibc
import Model
import SystemIO

/// The paths at which a user can reach a unix socket of the broker.
///
/// A broker that runs as a service has folders of its own. With PrivateTmp= other programs do not see its /tmp. With
/// ProtectHome= the broker does not see the folders of users.
package struct UnixSocketReachability: Hashable, Sendable {
    /// The user of the broker.
    package let brokerUser: UInt32
    /// A folder of the broker that every user can reach, such as /run/patchbay/tunnels; nil if there is none.
    let sharedFolder: String?
    /// The mount points of folders that are private to the service or hidden from it.
    let privateFolders: [String]

    package init(brokerUser: UInt32 = geteuid(), sharedFolder: String? = nil, privateFolders: [String] = []) {
        self.brokerUser = brokerUser
        self.sharedFolder = sharedFolder
        self.privateFolders = privateFolders
    }

    /// Returns the mount points that systemd has replaced for this service.
    ///
    /// - Parameter mounts: The content of /proc/self/mountinfo (proc(5)). Its fourth field is the root of the mount in its
    ///   file system, and the fifth is the mount point.
    /// - Returns: The paths, in the order of the file.
    package static func privateFolders(in mounts: String) -> [String] {
        mounts.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 4 else { return nil }
            let isReplaced = fields[3].contains("/systemd-private-") || fields[3].contains("/systemd/inaccessible/")
            return isReplaced ? String(fields[4]) : nil
        }
    }

    /// Returns the private folder that contains a path; nil for other paths.
    package func privateFolder(of path: String) -> String? {
        privateFolders.first { path.hasPrefix("\($0)/") }
    }

    /// Returns the mode of a socket that the user can reach. Every user may connect to a socket of another user in the
    /// shared folder; `ClientOwnerCheck` then checks each client.
    ///
    /// Another user gets no socket elsewhere, also not from root. That user could replace a folder of the path between
    /// two system calls of the broker, which would then create or change a file elsewhere.
    ///
    /// - Throws: `TunnelError.unreachable`, with an address that works.
    func access(to local: ListenAddress, for owner: UInt32) throws(TunnelError) -> UnixSocketAccess {
        guard case .unix(let path) = local else { return .private }
        if let folder = privateFolder(of: path) {
            throw refusal(local, "the broker runs as a service and has a \(folder) of its own")
        }
        if owner == brokerUser { return .private }
        if let sharedFolder, path.hasPrefix("\(sharedFolder)/"), !path.split(separator: "/").contains("..") {
            return UnixSocketAccess(mode: 0o666)
        }
        throw refusal(
            local,
            "the broker runs as user \(brokerUser) and cannot give a socket in this folder to user \(owner)"
        )
    }

    private func refusal(_ local: ListenAddress, _ reason: String) -> TunnelError {
        guard let sharedFolder, case .unix(let path) = local else {
            return .unreachable(local, reason, instead: "tcp:0, which only programs of your user can use")
        }
        let name = path.split(separator: "/").last ?? "tunnel"
        return .unreachable(local, reason, instead: "unix:\(sharedFolder)/\(name)")
    }
}
