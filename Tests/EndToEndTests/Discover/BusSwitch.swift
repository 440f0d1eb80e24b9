import Glibc
import TestSupport

/// Where libdbus looks for the system bus in this process: a link that each test points to the bus of its own host.
enum BusSwitch {
    private static let path: String = {
        let path = "/tmp/rig-bus-\(getpid())"
        setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(path)", 1)
        atexit { unlink("/tmp/rig-bus-\(getpid())") }
        return path
    }()

    static func point(to host: AvahiHost) {
        let socket = host.busAddress.dropFirst("unix:path=".count)
        unlink(path)
        symlink(String(socket), path)
    }

    static func pointNowhere() { unlink(path) }
}
