/// The properties of a simulated Android phone; `adb/phone.py` explains each.
package struct AndroidPhone: Sendable {
    /// How the adb server reaches the phone.
    package enum Attachment: Sendable {
        /// Like an emulator: the server lists and removes it at once, with a new transport each time.
        case emulator
        /// Like Wi-Fi debugging: the phone stays listed as offline after an unplug, and keeps its transport.
        case tcp
    }

    /// What a hostile phone sends to the adb server; `adb/phone.py` explains each.
    package enum Hostility: String, Sendable, CaseIterable {
        case garbage
        case length
        case endless
    }

    /// `ro.serialno`, which names the phone.
    package let serial: String
    /// Tells apart two phones with one serial in a test.
    package var copy = ""
    package var attachment = Attachment.emulator
    package var model = "Pixel_8"
    /// The name that a person gave the phone.
    package var name = "Pixel 8"
    /// The version of Android.
    package var release = "15"
    /// The name of the virtual device, if the phone is an emulator.
    package var virtualDevice = ""
    /// The UUID of the current boot, if the shell may read it.
    package var bootID = ""
    /// The address on which the phone's apps really listen.
    package var address = "127.0.0.1"
    /// The ports behind the phone's abstract sockets, by name.
    package var abstractSockets: [String: UInt16] = [:]
    /// The file that `logcat` prints and follows.
    package var log: String?
    /// The file of the debuggable apps that run: a line `PID UID PACKAGE PORT…` for each.
    package var apps: String?
    /// The user of the app that owns every listening socket.
    package var user = 10_234
    package var hostility: Hostility?
    /// True for a phone whose logcat cannot filter by user.
    package var hasOldLogcat = false
    /// False for a phone on which nobody has allowed this machine.
    package var isAuthorized = true

    package init(_ serial: String, attachment: Attachment = .emulator, address: String = "127.0.0.1") {
        (self.serial, self.attachment, self.address) = (serial, attachment, address)
    }

    /// The name of the phone in `ADBFixture`.
    package var key: String { serial + copy }

    /// The arguments of `adb/phone.py`.
    func arguments(port: UInt16) -> [String] {
        var words = ["\(port)", "--address", address, "--serial", serial, "--model", model, "--name", name]
        words += ["--release", release, "--uid", "\(user)", "--avd", virtualDevice, "--boot-id", bootID]
        if let log { words += ["--logcat", log] }
        if let apps { words += ["--apps", apps] }
        if !abstractSockets.isEmpty { words += ["--forward"] + abstractSockets.map { "\($0.key)=\($0.value)" } }
        if let hostility { words += ["--hostile", hostility.rawValue] }
        if hasOldLogcat { words.append("--old-logcat") }
        return isAuthorized ? words : words + ["--refuse-auth"]
    }
}
