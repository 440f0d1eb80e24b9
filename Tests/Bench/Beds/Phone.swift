import TestSupport
import SystemIO

/// The apps of a phone, and three ways to them: TCP, unix sockets, and the stand-in for usbmuxd.
///
/// One thread accepts everybody, holds the conversations, and echoes, so that 5,000 idle clients cost no more than their
/// descriptors. A stream to another app gets a thread of its own.
final class Phone: Sendable {
    static let udid = "00008030-001A2B3C4D5E6F70"

    /// Where each app listens; the phone's port is the same number.
    let ports: [App: UInt16]
    /// The same apps on unix sockets, for who cannot speak to usbmuxd.
    let paths: [App: String]
    let muxPath: String
    private let listeners: [Listener]

    /// Serves until the process ends.
    init(in scratch: ScratchFolder) throws {
        muxPath = scratch.file("mux")
        var listeners = [try Listener(on: .unix(path: muxPath))]
        var entrances = [PhoneThread.Entrance.mux]
        var ports: [App: UInt16] = [:]
        for app in App.allCases {
            let tcp = try Listener(on: .ipv4(0x7F00_0001, port: 0))
            ports[app] = tcp.address.port
            listeners += [tcp, try Listener(on: .unix(path: scratch.file("\(app)")))]
            entrances += [.app(app), .app(app)]
        }
        self.ports = ports
        paths = Dictionary(uniqueKeysWithValues: App.allCases.map { ($0, scratch.file("\($0)")) })
        self.listeners = listeners
        let descriptors = try listeners.map { try $0.duplicate().release() }
        let apps = Dictionary(uniqueKeysWithValues: ports.map { ($1, $0) })
        startThread(named: "bench-phone") { [entrances] in
            try? PhoneThread(apps: apps, entrances: Array(zip(descriptors, entrances))).run()
        }
    }
}
