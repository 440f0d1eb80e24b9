import SystemIO
import TestSupport

/// The apps of a phone, reachable over TCP, unix sockets and the usbmuxd stand-in.
///
/// One thread accepts all clients, speaks usbmuxd's protocol and echoes, so that 5,000 idle clients need only their
/// descriptors. A stream to another app has its own thread.
final class Phone: Sendable {
    static let udid = Phones.one

    /// The TCP port of each app, which is also its port on the phone.
    let ports: [App: UInt16]
    /// The unix sockets of the same apps, for forwarders without usbmuxd support.
    let paths: [App: String]
    let muxPath: String
    private let listeners: [Listener]

    /// Starts to serve; the apps run until the process ends.
    init(in scratch: ScratchFolder) throws {
        muxPath = scratch.file("mux")
        var listeners = [try Listener(on: .unix(path: muxPath))]
        var listenerKinds = [PhoneThread.ListenerKind.mux]
        var ports: [App: UInt16] = [:]
        for app in App.allCases {
            let tcp = try Listener(on: .ipv4(0x7F00_0001, port: 0))
            ports[app] = tcp.address.port
            listeners += [tcp, try Listener(on: .unix(path: scratch.file("\(app)")))]
            listenerKinds += [.app(app), .app(app)]
        }
        self.ports = ports
        paths = Dictionary(uniqueKeysWithValues: App.allCases.map { ($0, scratch.file("\($0)")) })
        self.listeners = listeners
        let descriptors = try listeners.map { try $0.duplicate().release() }
        let apps = Dictionary(uniqueKeysWithValues: ports.map { ($1, $0) })
        startThread(named: "bench-phone") { [listenerKinds] in
            try? PhoneThread(apps: apps, listenerKinds: Array(zip(descriptors, listenerKinds))).run()
        }
    }
}
