import Glibc
import TestSupport

/// The system bus address of libdbus in this process: a symbolic link that each test points to the bus of its own host.
enum BusSwitch {
    private static let path: String = {
        let path = "/tmp/rig-bus-\(getpid())"
        setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(path)", 1)
        atexit { unlink("/tmp/rig-bus-\(getpid())") }
        return path
    }()

    /// Starts a host and points the link to its bus.
    static func startHost(in scratch: ScratchFolder) async throws -> AvahiHost {
        let host = try await AvahiHost(in: scratch)
        point(to: host)
        return host
    }

    static func point(to host: AvahiHost) {
        let socket = host.busAddress.dropFirst("unix:path=".count)
        unlink(path)
        symlink(String(socket), path)
    }
}
