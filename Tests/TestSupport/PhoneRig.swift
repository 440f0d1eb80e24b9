import FoundationEssentials
import Glibc

/// The unmodified usbmuxd with fake phones on its cable.
///
/// usbmuxd loads our stand-in for libusb, which plays the phones; an app on a phone is a TCP server on loopback. The socket
/// and all state are in the scratch folder: the machine's own usbmuxd and its pairing records are not touched.
package actor PhoneRig {
    package nonisolated let socketPath: String
    private let folder: String
    private let scratch: ScratchFolder
    private let environment: [String: String]
    private var usbmuxd: Program?
    private var plugged: [String: PhoneOptions] = [:]

    /// usbmuxd with these phones, listed.
    ///
    /// `hangsAtUnplug` reproduces libimobiledevice/usbmuxd#114: an unplug under load hangs usbmuxd for ever.
    package init(_ udids: [String] = [], in scratch: ScratchFolder, hangsAtUnplug: Bool = false) async throws {
        let library = "\(RigFolder.build)/usbmuxd"
        try await RigFolder.build(
            "make",
            ["--silent", "-C", "\(RigFolder.sources)/usbmuxd", "BUILD=\(library)"],
            within: .seconds(120),
            in: scratch
        )
        self.scratch = scratch
        folder = try scratch.makeFolder("usbmuxd-\(UInt16.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(atPath: "\(folder)/devices", withIntermediateDirectories: true)
        socketPath = "\(folder)/usbmuxd"
        var environment = ["FAKEUSB_DIR": folder, "FAKEUSB_REDIRECT": "1", "LD_LIBRARY_PATH": library]
        if hangsAtUnplug { environment["FAKEUSB_HARD_UNPLUG"] = "1" }
        self.environment = environment
        try await start()
        for udid in udids { try await attach(udid) }
    }

    /// What makes a client of usbmuxd use this one.
    package nonisolated var clientEnvironment: [String: String] { ["USBMUXD_SOCKET_ADDRESS": "UNIX:\(socketPath)"] }

    /// Plugs a phone in; returns when usbmuxd lists it, or at once when its fault prevents that.
    ///
    /// A UDID is 40 hex digits, or 8 and 16 with a hyphen between.
    package func attach(_ udid: String, _ options: PhoneOptions = .usual) async throws {
        guard plugged[udid] == nil else { throw RigError("phone \(udid) is plugged in already") }
        let seen = usbmuxd?.transcript.soFar.count ?? 0
        try write(options, of: udid)
        guard let usbmuxd, options.fault != .neverListed else { return }
        try await usbmuxd.waitForLine("serial number \(udid)", from: seen)
    }

    /// Changes what a plugged phone is like, at once and for its open connections too.
    package func setOptions(_ options: PhoneOptions, of udid: String) throws {
        guard plugged[udid] != nil else { throw RigError("phone \(udid) is not plugged in") }
        try write(options, of: udid)
    }

    /// Pulls the cable; returns when usbmuxd has noticed.
    package func detach(_ udid: String) async throws {
        guard let options = plugged.removeValue(forKey: udid) else {
            throw RigError("phone \(udid) is not plugged in")
        }
        let seen = usbmuxd?.transcript.soFar.count ?? 0
        try FileManager.default.removeItem(atPath: "\(folder)/devices/\(udid)")
        guard let usbmuxd, options.fault != .neverListed else { return }
        try await usbmuxd.waitForLine("Removed device", from: seen)
    }

    /// Starts usbmuxd; returns when it lists the phones that are plugged in.
    package func start() async throws {
        // -v, since it then says when it is ready and when it lists a phone; -p, since no phone of ours has a lockdownd.
        let usbmuxd = try await Program(
            "usbmuxd",
            ["--foreground", "--no-preflight", "-v"],
            in: scratch,
            environment: environment,
            descriptorLimit: 8192
        )
        self.usbmuxd = usbmuxd
        try await usbmuxd.waitForLine("Initialization complete")
        for (udid, options) in plugged where options.fault != .neverListed {
            try await usbmuxd.waitForLine("serial number \(udid)")
        }
    }

    /// SIGTERM; the phones stay plugged in. It flushes for 100 ms and removes no socket.
    ///
    /// usbmuxd 1.1.1 sometimes hangs at its end while phones send ("Cannot find device entry for RX input"). It is killed then
    /// after 5 s, as systemd does it.
    package func stop() async throws {
        usbmuxd?.terminate()
        do { _ = try await usbmuxd?.exitStatus(within: .seconds(5)) } catch { usbmuxd?.kill() }
        _ = try await usbmuxd?.exitStatus()
        usbmuxd = nil
    }

    /// SIGKILL; the phones stay plugged in and the dead socket stays in its place.
    package func kill() async throws {
        usbmuxd?.kill()
        _ = try await usbmuxd?.exitStatus()
        usbmuxd = nil
    }

    package func restart() async throws {
        try await stop()
        try await start()
    }

    /// usbmuxd hangs: its socket accepts up to five clients and answers nobody.
    package func freeze() { usbmuxd?.freeze() }

    package func thaw() { usbmuxd?.thaw() }

    private func write(_ options: PhoneOptions, of udid: String) throws {
        let path = "\(folder)/devices/\(udid)"
        try Data(options.text.utf8).write(to: URL(filePath: "\(folder)/new"))
        // Renamed into place, so that the stand-in sees one event and a whole file.
        guard rename("\(folder)/new", path) == 0 else { throw RigError(call: "rename to \(path)") }
        plugged[udid] = options
    }
}
