import FoundationEssentials
import Glibc
import Tunnels

/// The folders of a service of systemd, for unix sockets that users must reach.
enum ServiceFolders {
    /// Returns the rules for unix sockets. systemd names the runtime folder in `RUNTIME_DIRECTORY` (systemd.exec(5)).
    static func sockets(environment: [String: String]) -> UnixSocketPlaces {
        let folder = environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first.map(String.init)
        let mounts = FileManager.default.contents(atPath: "/proc/self/mountinfo") ?? Data()
        return UnixSocketPlaces(
            brokerUser: geteuid(),
            sharedFolder: folder,
            privateFolders: UnixSocketPlaces.privateFolders(in: String(decoding: mounts, as: UTF8.self))
        )
    }
}
