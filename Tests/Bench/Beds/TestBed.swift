import TestSupport

/// The environment of the forwarders in one part of the run: a usbmuxd and a phone.
struct TestBed: Sendable {
    enum Kind: String, CaseIterable, Codable, Sendable {
        /// The stand-in for usbmuxd, whose streams end in this process, so that only the forwarder is measured.
        case plain = "plain pipe"
        /// The real usbmuxd and a simulated phone with the speed of USB 2: 40 MB/s each way.
        case cable = "usbmuxd, 40 MB/s"
        /// The real usbmuxd and a simulated phone without a speed limit.
        case unlimited = "usbmuxd, no limit"
    }

    let kind: Kind
    let muxPath: String
    let phone: Phone
    let scratch: ScratchFolder

    init(_ kind: Kind, phone: Phone, in scratch: ScratchFolder) async throws {
        self.kind = kind
        self.phone = phone
        self.scratch = scratch
        guard kind != .plain else {
            muxPath = phone.muxPath
            return
        }
        let rig = try await UsbmuxdFixture(in: scratch)
        var options = PhoneOptions()
        if kind == .unlimited { options.rate = 0 }
        try await rig.attach(Phone.udid, options)
        muxPath = rig.socketPath
    }

    /// The environment that makes a usbmuxd client use this one.
    var environment: [String: String] { ["USBMUXD_SOCKET_ADDRESS": "UNIX:\(muxPath)"] }

    func port(of app: App) -> UInt16 { phone.ports[app, default: 0] }
}
