import FoundationEssentials
import Glibc

/// The unmodified usbmuxd with simulated phones.
///
/// usbmuxd loads a stand-in for libusb that simulates the phones. An app on a phone is a TCP server on loopback. The
/// socket and all state are in the scratch folder; the machine's own usbmuxd and pairing records are not used.
package actor UsbmuxdFixture {
    package nonisolated let socketPath: String
    private let folder: String
    private let scratch: ScratchFolder
    private let environment: [String: String]
    private var usbmuxd: Program?
    private var plugged: [String: PhoneOptions] = [:]

    /// Starts usbmuxd with these phones and returns when they are listed.
    ///
    /// `hangsAtUnplug` reproduces libimobiledevice/usbmuxd#114: an unplug under load hangs usbmuxd forever.
    package init(_ udids: [String] = [], in scratch: ScratchFolder, hangsAtUnplug: Bool = false) async throws {
        let library = "\(TestSupportFolder.build)/usbmuxd"
        try await TestSupportFolder.build(
            "make",
            ["--silent", "-C", "\(TestSupportFolder.sources)/usbmuxd", "BUILD=\(library)"],
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

    /// The environment that makes a usbmuxd client use this one.
    package nonisolated var clientEnvironment: [String: String] { ["USBMUXD_SOCKET_ADDRESS": "UNIX:\(socketPath)"] }

    /// Attaches a phone; returns when usbmuxd lists it, or at once if its fault prevents that.
    ///
    /// A UDID has 40 hexadecimal digits, or 8 and 16 with a hyphen between.
    package func attach(_ udid: String, _ options: PhoneOptions = .usual) async throws {
        guard plugged[udid] == nil else { throw TestSupportError("phone \(udid) is plugged in already") }
        let seen = usbmuxd?.transcript.soFar.count ?? 0
        try write(options, of: udid)
        guard let usbmuxd, options.fault != .neverListed else { return }
        try await usbmuxd.waitForLine("serial number \(udid)", from: seen)
    }

    /// Changes the options of an attached phone, also for its open connections.
    package func setOptions(_ options: PhoneOptions, of udid: String) throws {
        guard plugged[udid] != nil else { throw TestSupportError("phone \(udid) is not plugged in") }
        try write(options, of: udid)
    }

    /// Detaches a phone; returns when usbmuxd has noticed.
    package func detach(_ udid: String) async throws {
        guard let options = plugged.removeValue(forKey: udid) else {
            throw TestSupportError("phone \(udid) is not plugged in")
        }
        let seen = usbmuxd?.transcript.soFar.count ?? 0
        try FileManager.default.removeItem(atPath: "\(folder)/devices/\(udid)")
        guard let usbmuxd, options.fault != .neverListed else { return }
        try await usbmuxd.waitForLine("Removed device", from: seen)
    }

    /// Starts usbmuxd; returns when it lists the attached phones.
    package func start() async throws {
        // -v makes usbmuxd log its readiness and each phone; -p is needed because the phones have no lockdownd.
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

    /// Stops usbmuxd with SIGTERM; the phones stay attached. It flushes for 100 ms and does not remove its socket.
    ///
    /// usbmuxd 1.1.1 sometimes hangs in its shutdown while phones send ("Cannot find device entry for RX input"). It is
    /// then killed after 5 s, as by systemd.
    package func stop() async throws {
        usbmuxd?.terminate()
        do { _ = try await usbmuxd?.exitStatus(within: .seconds(5)) } catch { usbmuxd?.kill() }
        _ = try await usbmuxd?.exitStatus()
        usbmuxd = nil
    }

    /// Kills usbmuxd with SIGKILL; the phones stay attached and the stale socket file remains.
    package func kill() async throws {
        usbmuxd?.kill()
        _ = try await usbmuxd?.exitStatus()
        usbmuxd = nil
    }

    package func restart() async throws {
        try await stop()
        try await start()
    }

    /// Stops usbmuxd with SIGSTOP: its socket accepts up to five clients and answers none.
    package func freeze() { usbmuxd?.freeze() }

    package func thaw() { usbmuxd?.thaw() }

    private func write(_ options: PhoneOptions, of udid: String) throws {
        let path = "\(folder)/devices/\(udid)"
        try Data(options.text.utf8).write(to: URL(filePath: "\(folder)/new"))
        // Renames the file into place, so that the stand-in sees one event and a complete file.
        guard rename("\(folder)/new", path) == 0 else { throw TestSupportError(call: "rename to \(path)") }
        plugged[udid] = options
    }
}
