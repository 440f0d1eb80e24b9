import TestSupport

/// A broker with a facade.
struct RunningFacade {
    let path: String
    let broker: RunningBroker

    init(in scratch: ScratchFolder, phones: PhoneRig?) async throws {
        path = scratch.file("mux")
        // The folder is the broker's home, where it looks for its configuration.
        try scratch.makeFolder(".config/patchbay")
        let text = "[devices]\nfacade = \"unix:\(path)\"\nprobe_ports = []\n"
        try scratch.write(text, to: ".config/patchbay/patchbay.toml")
        broker = try await RunningBroker(in: scratch, phones: phones)
    }

    /// What makes libusbmuxd use it.
    var environment: [String: String] { ["USBMUXD_SOCKET_ADDRESS": "UNIX:\(path)"] }

    /// Waits until it lists exactly these.
    func lists(_ udids: Set<String>) async throws {
        try await eventually("the facade lists \(udids)") {
            Set(try MuxPeer(to: path).devices().keys) == udids
        }
    }
}
