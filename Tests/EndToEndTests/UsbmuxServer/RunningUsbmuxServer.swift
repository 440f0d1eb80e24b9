import TestSupport

/// A broker with a usbmuxd-compatible server.
struct RunningUsbmuxServer {
    let path: String
    let broker: RunningBroker

    init(in scratch: ScratchFolder, phones: UsbmuxdFixture?) async throws {
        path = scratch.file("mux")
        // The folder is the broker's home, from which it reads its configuration.
        try scratch.makeFolder(".config/patchbay")
        // A test that fails shows the log, with the reason of each failed dial.
        let text = "[broker]\nlog_level = \"debug\"\n[devices]\nserve_usbmuxd = \"unix:\(path)\"\nprobe_ports = []\n"
        try scratch.write(text, to: ".config/patchbay/patchbay.toml")
        broker = try await RunningBroker(in: scratch, phones: phones)
    }

    /// The environment that makes libusbmuxd use this server.
    var environment: [String: String] { ["USBMUXD_SOCKET_ADDRESS": "UNIX:\(path)"] }

    /// Waits until the server lists exactly these devices.
    func lists(_ udids: Set<String>) async throws {
        try await eventually("the facade lists \(udids)") { Set(try MuxPeer(to: path).devices().keys) == udids }
    }
}
