import FoundationEssentials
import Glibc
package import Tunnels

/// The folders of a service of systemd, for unix sockets that users must reach. systemd names them in `RUNTIME_DIRECTORY`
/// (systemd.exec(5)), and sorts them.
package enum ServiceFolders {
    /// Lets every user enter the folder of tunnels, which systemd creates with the mode of the folder of grants. A service
    /// without a folder of grants keeps the mode.
    package static func openTunnels(environment: [String: String]) {
        guard grants(environment: environment) != nil, let tunnels = tunnels(environment: environment) else { return }
        chmod(tunnels, 0o755)
    }

    /// The folder for the sockets of grants, which only owners can enter. Nil if there is none.
    static func grants(environment: [String: String]) -> String? {
        folders(environment).first { $0.hasSuffix("/grants") }
    }

    private static func tunnels(environment: [String: String]) -> String? {
        folders(environment).first { !$0.hasSuffix("/grants") }
    }

    private static func folders(_ environment: [String: String]) -> [String] {
        environment["RUNTIME_DIRECTORY"]?.split(separator: ":").map(String.init) ?? []
    }

    /// Returns the rules for unix sockets.
    package static func sockets(environment: [String: String]) -> UnixSocketReachability {
        let mounts = FileManager.default.contents(atPath: "/proc/self/mountinfo") ?? Data()
        return UnixSocketReachability(
            brokerUser: geteuid(),
            sharedFolder: tunnels(environment: environment),
            privateFolders: UnixSocketReachability.privateFolders(in: String(decoding: mounts, as: UTF8.self))
        )
    }
}
